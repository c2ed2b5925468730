"""Endpoints of a fork that fail, refuse, or are of another chain, and blocks that are refused."""

import pytest
from msgspec import structs

from foreblock import DevChain
from foreblock.chains.chain_file import preset
from foreblock.errors import BadSetting
from foreblock.fork import fork_upstream
from foreblock.fork.chain_rules import config_of_fork
from foreblock.fork.fork_upstream import open_upstreams
from foreblock.settings import ChainSettings, ForkSettings
from support.upstreams.forked import BOB, Upstream
from support.upstreams.plain_state import header
from support.upstreams.relay import relayed

OTHER = b"\xcc" * 20


def test_one_of_two_may_fail(upstream: Upstream) -> None:
    with relayed(f"http://{upstream.relay.place}") as second:
        urls = (upstream.relay.url, second.url)
        with upstream.fork(options={"url": urls}) as fork:
            upstream.relay.status = 503
            assert fork.balance(BOB) == 5
            upstream.relay.status, second.status = 200, 503
            upstream.on(fork).send("transfer", OTHER, 1)
            assert upstream.on(fork).call("balanceOf", OTHER) == 1
            second.status = 200


def test_one_that_does_not_respond_is_replaced(upstream: Upstream) -> None:
    with (
        relayed(f"http://{upstream.relay.place}") as second,
        upstream.fork(options={"url": (upstream.relay.url, second.url)}) as fork,
    ):
        upstream.relay.delay = 20.0
        second.forget()
        assert fork.balance(BOB) == 5
        assert second.state_requests
        upstream.relay.delay = 0.0


def test_a_rate_limit_is_waited_for(upstream: Upstream) -> None:
    with upstream.fork() as fork:
        left = 3

        def limited(request: dict[str, object]) -> dict[str, object] | None:
            nonlocal left
            left -= 1
            if left < 0:
                return None
            error = {"code": 429, "message": "rate limit exceeded"}
            return {"jsonrpc": "2.0", "id": request["id"], "error": error}

        upstream.relay.instead = limited
        assert fork.balance(BOB) == 5
        assert left < 0


def test_endpoints_of_different_chains_are_refused(upstream: Upstream) -> None:
    with (
        DevChain(rules="ethereum", chain_id=5) as other,
        other.serve() as server,
        pytest.raises(BadSetting, match="of different chains"),
    ):
        upstream.fork(options={"url": (upstream.relay.url, server.url)})


def test_a_name_of_a_chain_is_its_public_endpoint(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = preset("op-mainnet")
    assert facts.endpoints is not None
    (public,) = open_upstreams(ForkSettings(url=("op-mainnet",)), None)
    assert facts.endpoints.rpc.endswith(public.shown.removeprefix("https://"))
    endpoints = structs.replace(facts.endpoints, rpc=upstream.relay.url)
    for chain_id in (31337, 10):
        here = structs.replace(facts, endpoints=endpoints, chain_id=chain_id)
        monkeypatch.setattr(fork_upstream, "preset", {"op-mainnet": here}.__getitem__)
        if chain_id == 31337:
            with DevChain(fork="op-mainnet", fork_cache=False) as fork:
                assert fork.balance(BOB) == 5
                assert fork.rpc("anvil_nodeInfo")["forkConfig"]["forkUrl"] == upstream.relay.url
        else:
            with pytest.raises(BadSetting, match="op-mainnet has the chain id 10, but"):
                DevChain(fork="op-mainnet", fork_cache=False)
    with pytest.raises(BadSetting, match="or a chain of `foreblock chains`"):
        upstream.fork(options={"url": "op-main"})


def test_a_fork_may_have_another_chain_id(upstream: Upstream) -> None:
    with upstream.fork(chain_id=777) as fork:
        assert fork.rpc("eth_chainId") == "0x309"
        upstream.on(fork).send("transfer", OTHER, 1)
        assert upstream.on(fork).call("balanceOf", OTHER) == 1
        assert fork.rpc("anvil_metadata")["forkedNetwork"]["chainId"] == 31337


def test_a_block_of_amsterdam_is_refused() -> None:
    osaka = header(7).replace(
        base_fee_per_gas=1,
        withdrawals_root=bytes(32),
        blob_gas_used=0,
        excess_blob_gas=0,
        parent_beacon_block_root=bytes(32),
        requests_hash=bytes(32),
    )
    assert b"osakaTime" in config_of_fork(ChainSettings(), 9, 9, osaka)
    amsterdam = osaka.replace(block_access_list_hash=bytes(32), slot_number=1)
    with pytest.raises(BadSetting, match="block 7 has a block access list"):
        config_of_fork(ChainSettings(), 9, 9, amsterdam)
