"""A fork has the state of its block: that of the upstream, or of a full copy of the chain."""

import json
import threading
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from foreblock import DevChain
from foreblock.errors import (
    BadSetting,
    DifferentGenesis,
    ForeblockError,
    IncompleteState,
    InvalidProofData,
    NoUpstream,
    RefusedCommand,
    Reverted,
    StoreOpenHere,
)
from measures.forks import balances_call
from support.upstreams.forked import BOB, OpenUpstream, Rules, Upstream
from support.upstreams.relay import refusing, relayed

NOBODY = b"\xcc" * 20
# Methods that trace a transaction, which return null for an unknown one.
OF_TRANSACTION = (
    "ots_getInternalOperations", "ots_getTransactionError", "ots_traceTransaction",
    "trace_transaction",
)  # fmt: skip
L1_BLOCK = "0x4200000000000000000000000000000000000015"


def text(data: bytes) -> str:
    return f"0x{data.hex()}"


def both(upstream: Upstream, fork: DevChain, method: str, *params: object) -> Any:  # noqa: ANN401
    """What both chains answer, which is the same."""
    expected = upstream.chain.rpc(method, *params)
    assert fork.rpc(method, *params) == expected, (method, params)
    return expected


@pytest.mark.parametrize("rules", ["ethereum", "optimism"])
def test_reads_are_those_of_the_upstream(open_upstream: OpenUpstream, rules: Rules) -> None:
    upstream = open_upstream(rules)
    token, latest = text(upstream.token.address), upstream.chain.rpc("eth_blockNumber")
    with upstream.fork() as fork:
        for block in ("latest", latest, "0x1"):
            both(upstream, fork, "eth_getBalance", text(BOB), block)
            both(upstream, fork, "eth_getTransactionCount", text(fork.accounts[0]), block)
            both(upstream, fork, "eth_getCode", token, block)
            both(upstream, fork, "eth_getStorageAt", token, "0x0", block)
        assert upstream.on(fork).call("balanceOf", BOB) == 7
        for number in range(int(latest, 16) + 1):
            block = both(upstream, fork, "eth_getBlockByNumber", hex(number), True)
            both(upstream, fork, "eth_getBlockByHash", block["hash"], False)
            both(upstream, fork, "eth_getBlockReceipts", hex(number))
            both(upstream, fork, "eth_getBlockTransactionCountByNumber", hex(number))
            both(upstream, fork, "eth_getBlockTransactionCountByHash", block["hash"])
            both(upstream, fork, "debug_getRawBlock", hex(number))
            for each in block["transactions"]:
                both(upstream, fork, "eth_getTransactionByHash", each["hash"])
                both(upstream, fork, "eth_getTransactionReceipt", each["hash"])
            both(
                upstream,
                fork,
                "eth_getLogs",
                {"blockHash": block["hash"].upper().replace("X", "x")},
            )
        both(upstream, fork, "eth_getTransactionByBlockNumberAndIndex", "latest", "0x0")
        both(upstream, fork, "eth_getBlockByNumber", "earliest", False)
        both(upstream, fork, "eth_getBlockReceipts", "earliest")
        logs = both(upstream, fork, "eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"})
        assert logs
        assert fork.rpc("eth_chainId") == upstream.chain.rpc("eth_chainId")
        assert fork.rpc("eth_blockNumber") == latest


@pytest.mark.parametrize("rules", ["ethereum", "optimism"])
def test_transactions_do_what_they_do_on_the_chain_itself(
    open_upstream: OpenUpstream, rules: Rules
) -> None:
    upstream = open_upstream(rules)
    with upstream.fork() as fork:
        found = []
        for chain, token in ((upstream.chain, upstream.token), (fork, upstream.on(fork))):
            sent = [
                token.send("transfer", BOB, 3),
                chain.send(NOBODY, value=9, sender=chain.accounts[1]),
                token.send("transfer", NOBODY, 10**9, check=False, gas=100_000),
                chain.send(None, data="0x6001600055", gas=100_000),
            ]
            receipts = [each.receipt for each in sent]
            said = [
                (each.status, each.gas_used, [(log.topics, log.data) for log in each.logs])
                for each in receipts
                if each is not None
            ]
            balances = [token.call("balanceOf", BOB), chain.balance(BOB), chain.balance(NOBODY)]
            found.append((said, balances, chain.rpc("eth_blockNumber")))
        assert found[0] == found[1]
        logs = fork.rpc("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"})
        assert len(logs) == len(upstream.chain.rpc("eth_getLogs", {"fromBlock": "0x0"}))


def test_a_fork_of_an_op_chain_keeps_the_attributes_of_l1(open_upstream: OpenUpstream) -> None:
    upstream = open_upstream("optimism")
    with upstream.fork(seed=7) as fork:

        def attributes(chain: DevChain) -> list[Any]:
            slots = map(hex, range(9))
            return [chain.rpc("eth_getStorageAt", L1_BLOCK, slot, "latest") for slot in slots]

        expected = attributes(upstream.chain)
        assert any(int(each, 16) for each in expected)
        fork.seal()
        upstream.on(fork).send("transfer", BOB, 1)
        assert attributes(fork) == expected
        latest = int(fork.rpc("eth_blockNumber"), 16)
        first, second = (
            fork.rpc("eth_getBlockByNumber", hex(number), True)["transactions"][0]
            for number in (latest - 1, latest)
        )
        assert first["hash"] != second["hash"]
        assert first["input"] == second["input"]


def test_no_key_is_fetched_twice(upstream: Upstream) -> None:
    with upstream.fork() as fork:
        token = upstream.on(fork)

        def use() -> None:
            for block in ("latest", "pending"):
                assert fork.rpc("eth_getBalance", text(BOB), block) == "0x5"
                fork.rpc("eth_getCode", text(token.address), block)
            token.send("transfer", NOBODY, 1)
            assert token.call("balanceOf", BOB) == 7

        use()
        upstream.relay.forget()
        use()
        assert not upstream.relay.methods


def test_the_fork_stays_at_its_block(upstream: Upstream) -> None:
    with upstream.fork() as fork:
        sent = upstream.chain.send(BOB, value=100)
        later = upstream.chain.rpc("eth_getBlockByNumber", "latest", False)
        assert fork.balance(BOB) == 5
        assert fork.rpc("eth_getTransactionReceipt", text(sent.hash)) is None
        assert fork.rpc("eth_getBlockByNumber", later["number"], False) is None
        assert fork.rpc("eth_getBlockByHash", later["hash"], False) is None
        named = {"blockHash": later["hash"]}
        for method, *params in (
            ("eth_getBalance", text(BOB), named),
            ("eth_call", {"to": text(BOB)}, named),
            ("eth_getLogs", named),
            ("debug_getRawBlock", later["hash"]),
            ("debug_traceTransaction", text(sent.hash)),
        ):
            with pytest.raises(ForeblockError, match=r"not found|unknown|not known"):
                fork.rpc(method, *params)
        assert fork.rpc("eth_getBlockTransactionCountByHash", later["hash"]) is None
        assert fork.rpc("eth_getBlockReceipts", later["hash"]) is None
        for method in OF_TRANSACTION:
            assert fork.rpc(method, text(sent.hash)) is None


def test_traces_of_transactions_below_come_from_the_upstream(upstream: Upstream) -> None:
    below = upstream.chain.rpc("eth_getBlockByNumber", "latest", False)["transactions"][0]
    with upstream.fork() as fork, fork.serve() as server:
        for method in OF_TRANSACTION:
            assert both(upstream, fork, method, below) is not None
        both(upstream, fork, "trace_replayTransaction", below, ["trace", "stateDiff"])
        local = upstream.on(fork).send("transfer", BOB, 1)
        wire = HTTPConnection(urlsplit(server.url).netloc)
        for transaction, source in ((below, "upstream"), (text(local.hash), None)):
            named = {"method": "trace_transaction", "params": [transaction]}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, **named})
            wire.request("POST", "/", body, {"Content-Type": "application/json"})
            response = wire.getresponse()
            assert json.load(response)["result"][0]["transactionHash"] == transaction
            assert response.headers["Foreblock-Source"] == source
        wire.close()
        upstream.relay.instead = refusing("trace_transaction")
        with pytest.raises(ForeblockError, match="no such method"):
            fork.rpc("trace_transaction", below)


def test_history_that_is_not_verified_is_refused(upstream: Upstream) -> None:
    block = upstream.chain.rpc("eth_getBlockByNumber", "0x2", False)

    def lie(request: dict[str, Any]) -> dict[str, Any] | None:
        method = request["method"]
        if not method.startswith(("eth_getBlockBy", "eth_getBlockReceipts")):
            return None
        true = upstream.chain.rpc(method, *request["params"])
        false = {"gasUsed": "0x1", "status": "0x0"}
        result = [{**each, **false} for each in true] if isinstance(true, list) else true | false
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}

    with upstream.fork(options={"retries": 0, "timeout": 5.0}) as fork:
        upstream.relay.instead = lie
        for method, *params in (
            ("eth_getBlockByNumber", "0x2", False),
            ("eth_getBlockByHash", block["hash"], False),
            ("eth_getBlockReceipts", "0x2"),
        ):
            with pytest.raises((NoUpstream, InvalidProofData)):
                fork.rpc(method, *params)


def test_edits_and_snapshots_are_above_the_fetched_state(upstream: Upstream) -> None:
    with upstream.fork() as fork:
        token, before = upstream.on(fork), fork.rpc("eth_blockNumber")
        snapshot = fork.rpc("evm_snapshot")
        fork.rpc("anvil_setBalance", text(BOB), "0x10")
        fork.rpc("anvil_setStorageAt", text(token.address), "0x" + "0" * 64, "0x" + "7" * 64)
        fork.rpc("anvil_setNonce", text(NOBODY), "0x5")
        assert fork.balance(BOB) == 16
        assert fork.rpc("eth_getStorageAt", text(token.address), "0x0", before) == "0x" + "0" * 64
        fork.rpc("evm_mine")
        fork.rpc("anvil_mine", "0x40")
        assert fork.rpc("eth_getTransactionCount", text(NOBODY), "latest") == "0x5"
        assert fork.rpc("evm_revert", snapshot)
        assert (fork.balance(BOB), fork.rpc("eth_blockNumber")) == (5, before)
        assert fork.rpc("eth_getTransactionCount", text(NOBODY), "latest") == "0x0"
        fork.rpc("anvil_impersonateAccount", text(BOB))
        fork.rpc("anvil_setBalance", text(BOB), hex(10**18))
        token.send("transfer", NOBODY, 7, sender=BOB)
        assert token.call("balanceOf", NOBODY) == 7
        fork.rpc("anvil_reset")
        assert (fork.balance(BOB), fork.rpc("eth_blockNumber")) == (5, before)


def test_accounts_are_funded_and_keep_the_rest(upstream: Upstream) -> None:
    with upstream.fork(balance=5) as fork:
        owner = fork.accounts[0]
        assert fork.balance(owner) == 5 * 10**18
        assert fork.nonce(owner) == upstream.chain.nonce(owner) > 0


def test_a_block_is_named_by_number_hash_or_distance(upstream: Upstream) -> None:
    block = upstream.chain.rpc("eth_getBlockByNumber", "0x1", False)
    for name in ("1", "01", "0x1", block["hash"], "-2"):
        with upstream.fork(options={"block_number": name}) as fork:
            assert fork.rpc("eth_blockNumber") == "0x1", name
            assert fork.balance(BOB) == 0
            assert fork.rpc("eth_getBlockByNumber", "latest", False) == block


def test_an_upstream_without_proofs_is_trusted(upstream: Upstream) -> None:
    upstream.relay.instead = refusing("eth_getProof")
    with upstream.fork() as fork:
        assert fork.balance(BOB) == 5
        upstream.on(fork).send("transfer", BOB, 1)
        assert upstream.on(fork).call("balanceOf", BOB) == 8
    with pytest.raises(BadSetting, match="fork_proofs: no endpoint proves"):
        upstream.fork(options={"proofs": "on"})


def test_a_value_that_is_not_proven_is_refused(upstream: Upstream) -> None:
    def lie(request: dict[str, Any]) -> dict[str, Any] | None:
        if request["method"] != "eth_getProof" or request["params"][0] != text(BOB):
            return None
        answer = upstream.chain.rpc("eth_getProof", *request["params"])
        *nodes, leaf = answer["accountProof"]
        false = {**answer, "balance": "0x99", "accountProof": [*nodes, leaf[:-2] + "00"]}
        return {"jsonrpc": "2.0", "id": request["id"], "result": false}

    with upstream.fork(options={"retries": 0, "timeout": 5.0}) as fork:
        upstream.relay.instead = lie
        with pytest.raises(NoUpstream):
            fork.balance(BOB)


def test_a_directory_continues_without_its_upstream(upstream: Upstream, tmp_path: Path) -> None:
    with upstream.fork(data=tmp_path / "store") as fork:
        sent = upstream.on(fork).send("transfer", BOB, 1)
        number = fork.rpc("eth_blockNumber")
    upstream.relay.forget()
    with upstream.fork(data=tmp_path / "store") as fork:
        assert fork.rpc("eth_blockNumber") == number
        assert upstream.on(fork).call("balanceOf", BOB) == 8
        assert fork.receipt(sent.hash) is not None
        assert not upstream.relay.state_requests


def test_a_directory_continues_with_its_own_chain_only(upstream: Upstream, tmp_path: Path) -> None:
    options = {"proofs": "off", "retries": 0, "timeout": 5.0}
    with upstream.fork(data=tmp_path, options=options) as fork:
        fork.seal()
    with (
        DevChain(rules="ethereum", chain_id=5) as other,
        other.serve() as server,
        relayed(server.url) as relay,
        upstream.fork(data=tmp_path, options={**options, "url": relay.url}) as fork,
    ):
        with pytest.raises(NoUpstream):
            fork.balance(BOB)
        assert relay.methods["eth_chainId"], "the endpoint is probed"


def test_what_cannot_be_had_is_an_error_with_the_upstream(
    upstream: Upstream, tmp_path: Path
) -> None:
    with upstream.fork(data=tmp_path) as fork:
        fork.send(fork.accounts[1], value=1)
        before = fork.rpc("eth_blockNumber")
    with upstream.fork(data=tmp_path, options={"retries": 1, "timeout": 5.0}) as fork:
        upstream.relay.status = 503
        with pytest.raises(NoUpstream, match=r"http://127.0.0.1"):
            fork.balance(BOB)
        with pytest.raises(NoUpstream, match=r"http://127.0.0.1"):
            fork.send(BOB, value=1)
        with pytest.raises(RefusedCommand, match=r"http://127.0.0.1"):
            fork.rpc("anvil_setBalance", text(BOB), "0x1")
        assert fork.rpc("eth_blockNumber") == before
        fork.send(fork.accounts[1], value=1)  # known accounts can be used
        upstream.relay.status = 200


def test_a_command_without_its_state_leaves_nothing(upstream: Upstream) -> None:
    with upstream.fork(options={"retries": 0, "timeout": 5.0}) as fork:
        before = fork.seal().timestamp
        upstream.relay.status = 503
        with pytest.raises(RefusedCommand, match="503"):
            fork.rpc("evm_increaseTime", 3600)
        assert fork.seal().timestamp == before + 1
        upstream.relay.status = 200
        fork.rpc("evm_increaseTime", 3600)
        assert fork.seal().timestamp >= before + 3600


def test_blocks_wait_for_their_state(upstream: Upstream) -> None:
    with upstream.fork(mode="clock", options={"retries": 0, "timeout": 5.0}) as fork:
        upstream.relay.status = 503
        number, latest = "", fork.rpc("eth_blockNumber")
        while latest != number:  # beyond the slots that were fetched together
            fork.advance(2)
            number, latest = latest, fork.rpc("eth_blockNumber")
        upstream.relay.status = 200
        fork.advance(10)
        assert int(fork.rpc("eth_blockNumber"), 16) > int(number, 16)


def test_transactions_wait_for_the_state_of_their_block(upstream: Upstream) -> None:
    with upstream.fork(options={"retries": 0, "timeout": 5.0}) as fork:
        fork.send(fork.accounts[1], value=1)
        upstream.relay.status = 503
        with suppress(RefusedCommand):
            while True:
                fork.seal()
        sent = fork.rpc(
            "eth_sendTransaction",
            {"from": text(fork.accounts[0]), "to": text(fork.accounts[1]), "gas": "0x5208"},
        )
        upstream.relay.status = 200
        fork.send(fork.accounts[1], value=1)
        assert fork.rpc("eth_getTransactionReceipt", sent)["status"] == "0x1"


def without_safe_block(request: dict[str, Any]) -> dict[str, Any] | None:
    """The response of a chain without finality, as it is right after its start."""
    is_named = request["method"] == "eth_getBlockByNumber" and request["params"][0] == "safe"
    return {"jsonrpc": "2.0", "id": request["id"], "result": None} if is_named else None


def test_a_start_without_its_block_ends_with_the_reason(upstream: Upstream) -> None:
    url = upstream.relay.url

    def refused(**options: object) -> str:
        with pytest.raises((BadSetting, NoUpstream)) as caught:
            DevChain(fork={"url": url, "cache": False, "timeout": 5.0, **options})
        return str(caught.value)

    assert "has no block 99" in refused(block_number="99")
    assert "expected latest" in refused(block_number="soon")
    upstream.relay.instead = without_safe_block
    assert "has no block safe; its latest is 3" in refused(block_number="safe")
    upstream.relay.instead = lambda _: None
    assert "has the chain id 31337, not 1" in refused(chain_id=1)
    assert "http://127.0.0.1:1" in refused(url="http://127.0.0.1:1")
    assert "expected a URL" in refused(url="ftp://127.0.0.1")
    assert "'Name: value'" in refused(header=("nonsense",))
    upstream.relay.instead = refusing(
        "eth_getProof", "eth_getBalance", "eth_getTransactionCount", "eth_call",
        code=-32000, message="missing trie node",
    )  # fmt: skip
    assert "the state of block" in refused()
    assert json.dumps(refused())


def test_proofs_are_of_the_fork_block_and_below(upstream: Upstream) -> None:
    with upstream.fork() as fork:
        latest = fork.rpc("eth_blockNumber")
        both(upstream, fork, "eth_getProof", text(BOB), ["0x0"], "0x1")
        both(upstream, fork, "eth_getProof", text(BOB), ["0x0"], latest)
        fork.seal()
        with pytest.raises(IncompleteState, match="above the fork"):
            fork.rpc("eth_getProof", text(BOB), [], "latest")


def test_simulations_estimates_and_traces_run_on_fetched_state(upstream: Upstream) -> None:
    call = {"from": text(upstream.chain.accounts[0]), "to": text(upstream.token.address)}
    call["data"] = "0xa9059cbb" + BOB.hex().rjust(64, "0") + f"{3:064x}"
    with upstream.fork() as fork:
        both(upstream, fork, "eth_estimateGas", call)
        both(upstream, fork, "eth_createAccessList", call)
        both(upstream, fork, "debug_traceCall", call, "latest", {"tracer": "callTracer"})
        for chain in (upstream.chain, fork):
            chain.seal()
        payload = {"blockStateCalls": [{"calls": [call]}]}
        calls = [
            chain.rpc("eth_simulateV1", payload, "latest")[0]["calls"]
            for chain in (upstream.chain, fork)
        ]
        for each in calls:
            each[0]["logs"][0].pop("blockHash")
            each[0]["logs"][0].pop("blockTimestamp")
        assert calls[0] == calls[1]


def test_a_call_that_reads_much_takes_two_rounds(upstream: Upstream) -> None:
    tokens = [bytes(upstream.chain.deploy(upstream.code).address) for _ in range(40)]
    call = balances_call(tokens, bytes(upstream.chain.accounts[0]))
    with upstream.fork() as fork:
        upstream.relay.forget()
        both(upstream, fork, "eth_call", call, "latest")
        # The first round has the multicall and the access list, the second all that is in it.
        counts = upstream.relay.methods
        assert (counts["eth_createAccessList"], counts["eth_getProof"]) == (1, 41)
        assert upstream.relay.exchanges <= 8
        upstream.relay.forget()
        both(upstream, fork, "eth_call", call, "latest")
        assert not upstream.relay.methods


def test_a_call_below_the_fork_reverts_as_any(upstream: Upstream) -> None:
    call = {"to": text(upstream.token.address), "data": "0xa9059cbb" + f"{5:064x}" * 2}
    with upstream.fork() as fork:
        fork.seal()
        said = []
        for chain in (upstream.chain, fork):
            with pytest.raises(Reverted) as caught:
                chain.rpc("eth_call", call, "0x1")
            said.append(str(caught.value))
        assert said[0] == said[1]


def test_a_fork_leaves_no_thread(upstream: Upstream, tmp_path: Path) -> None:
    with upstream.fork(data=tmp_path) as fork:
        assert fork.balance(BOB) == 5
        fork.rpc("anvil_reset", {"forking": {"blockNumber": 1}})
        with pytest.raises(StoreOpenHere):
            upstream.fork(data=tmp_path)
    with pytest.raises(DifferentGenesis):
        DevChain(rules="ethereum", data=tmp_path)
    assert not [each for each in threading.enumerate() if each.name == "fork"]


def test_headers_are_sent(upstream: Upstream) -> None:
    with upstream.fork(options={"header": ("Authorization: Bearer 5",)}) as fork:
        fork.balance(BOB)
        assert upstream.relay.headers["Authorization"] == "Bearer 5"
