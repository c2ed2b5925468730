"""A fork that was recorded runs without its upstream."""

from pathlib import Path

import pytest

from foreblock import DevChain
from foreblock.errors import BadSetting, NoUpstream, Reverted
from support.upstreams.forked import BOB, Upstream

OTHER = b"\xcc" * 20


def text(data: bytes) -> str:
    return f"0x{data.hex()}"


def use(upstream: Upstream, fork: DevChain) -> list[object]:
    """What a test does with a fork."""
    token = upstream.on(fork)
    sent = token.send("transfer", OTHER, 1).receipt
    assert sent is not None
    return [
        token.call("balanceOf", BOB),
        token.call("balanceOf", OTHER),
        fork.balance(BOB),
        sent.gas_used,
        fork.rpc("eth_getBlockByNumber", "0x1", True),
        fork.rpc("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"}),
        fork.rpc("eth_getTransactionReceipt", text(bytes(32))),
        fork.rpc("eth_getBalance", text(BOB), "0x1"),
        fork.rpc("eth_createAccessList", {"to": text(OTHER)}, "0x1"),
        reverted(upstream, fork),
    ]


def reverted(upstream: Upstream, fork: DevChain) -> str:
    """The error of a call below the fork."""
    call = {"to": text(upstream.token.address), "data": "0xa9059cbb" + f"{5:064x}" * 2}
    with pytest.raises(Reverted) as caught:
        fork.rpc("eth_call", call, "0x1")
    return str(caught.value)


def test_a_recording_is_enough(upstream: Upstream, tmp_path: Path) -> None:
    file = tmp_path / "test.fork"
    with upstream.fork(options={"record": str(file)}) as fork:
        expected = use(upstream, fork)
    upstream.relay.forget()
    for _ in range(2):
        with DevChain(fork={"state": str(file)}) as fork:
            assert use(upstream, fork) == expected
            unknown = text(b"\xdd" * 20)
            with pytest.raises(NoUpstream, match=f"test.fork does not have account {unknown}"):
                fork.rpc("eth_getBalance", unknown, "latest")
            slot = f"slot 0x63 of {text(upstream.token.address)}"
            with pytest.raises(NoUpstream, match=f"test.fork does not have {slot}"):
                fork.rpc("eth_getStorageAt", text(upstream.token.address), "0x63", "latest")
            with pytest.raises(NoUpstream, match="does not have eth_getBlockByHash"):
                fork.rpc("eth_getBlockByHash", text(bytes(32)), False)
    assert not upstream.relay.exchanges


def test_a_recording_has_each_answer_once(upstream: Upstream, tmp_path: Path) -> None:
    file = tmp_path / "test.fork"
    with upstream.fork(options={"record": str(file)}) as fork:
        fork.rpc("eth_getBalance", text(BOB), "0x1")
        size = file.stat().st_size
        upstream.relay.forget()
        fork.rpc("eth_getBalance", text(BOB), "0x1")
        assert file.stat().st_size == size
        assert not upstream.relay.exchanges


def test_a_recorded_chain_may_run_for_longer(upstream: Upstream, tmp_path: Path) -> None:
    file = tmp_path / "test.fork"
    with upstream.fork(options={"record": str(file)}) as fork:
        fork.seal()
    with DevChain(fork={"state": str(file)}) as fork:
        fork.rpc("evm_increaseTime", 86_400)
        fork.rpc("anvil_mine", "0x200")
        fork.send(fork.accounts[1], value=1)
        assert int(fork.rpc("eth_blockNumber"), 16) > 0x200


def test_a_recording_begins_with_its_chain(upstream: Upstream, tmp_path: Path) -> None:
    with upstream.fork(data=tmp_path / "chain") as fork:
        fork.seal()
    with pytest.raises(BadSetting, match="fork_record"):
        upstream.fork(data=tmp_path / "chain", options={"record": str(tmp_path / "test.fork")})


def test_a_file_of_the_cache_is_a_recording_of_state(upstream: Upstream, tmp_path: Path) -> None:
    with upstream.fork(options={"cache": True, "cache_path": str(tmp_path)}) as fork:
        assert upstream.on(fork).call("balanceOf", BOB) == 7
    (file,) = tmp_path.glob("*/*")
    with DevChain(fork={"state": str(file)}) as fork:
        assert upstream.on(fork).call("balanceOf", BOB) == 7


def test_what_contradicts_itself_is_refused(upstream: Upstream, tmp_path: Path) -> None:
    file = tmp_path / "test.fork"

    def refused(**options: object) -> str:
        with pytest.raises(BadSetting) as caught:
            DevChain(fork=options)
        return str(caught.value)

    assert "there is no file" in refused(state=str(file))
    file.write_bytes(b"something else")
    assert "is not a recording" in refused(state=str(file))
    assert "exists already" in refused(url=upstream.relay.url, record=str(file))
    assert "needs no endpoint" in refused(url=upstream.relay.url, state=str(file))
    assert "nothing is fetched" in refused(record=str(file), state=str(file))
