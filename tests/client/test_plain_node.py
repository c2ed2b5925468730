"""A client at nodes without foreblock's extensions, and its behaviour when they fail."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from foreblock import AsyncClient, Client
from foreblock.errors import (
    EndpointError,
    ErrorAnswer,
    ForeblockError,
    NoSuchBlock,
    NotAnAnswer,
    OutcomeUnknown,
    RefusedAnswer,
    Reverted,
    StaleEndpoint,
    SyncTimedOut,
    Unreachable,
)
from support.each_case import each_case
from support.servers.toy_endpoint import (
    HttpRequest,
    ToyError,
    ToyResponse,
    answered,
    http_endpoint,
    refusal,
    toy_endpoint,
)
from support.upstreams.plain_state import ADDRESSES, CODES, header
from support.upstreams.toy_node import TIP, ToyNode, toy_node

ALICE, HOME = ADDRESSES[0], ADDRESSES[1]
HASH = b"\x11" * 32
NOW = {"Retry-After": "0"}
BUSY = ToyResponse(503, b"busy", NOW)
FAULTS = [
    BUSY,
    ToyResponse(429, b"", NOW),
    ToyResponse(502, b"<html>", NOW),
    ToyResponse(200, b"<html>", NOW),
    ToyResponse(200, b'{"jsonrpc":', NOW),
    ToyResponse(200, b"[]", cut=0),
]
RESULT = b'HTTP/1.1 200 OK\r\nContent-Length: 39\r\n\r\n{"jsonrpc":"2.0","id":1,"result":"0x1"}'
LIMITED = {"code": -32005, "message": "rate limit exceeded"}
RECEIPT: dict[str, object] = {
    "transactionHash": "0x" + HASH.hex(), "transactionIndex": "0x0", "blockNumber": "0x5",
    "blockHash": "0x" + HASH.hex(), "from": "0x" + ALICE.hex(), "to": None, "status": "0x1",
    "gasUsed": "0x5208", "cumulativeGasUsed": "0x5208", "logs": [],
}  # fmt: skip


@pytest.fixture
def node() -> Iterator[ToyNode]:
    whole = {"eth_getBlockByNumber": lambda block: block and {**block, "transactions": []}}
    with toy_node(ToyNode(lies=whole)) as running:
        yield running


@pytest.fixture
def client(node: ToyNode) -> Iterator[Client]:
    with Client(node.url) as opened:
        yield opened


def failing(count: int, fault: ToyResponse) -> Callable[[int, Any], ToyResponse | None]:
    """Respond with the fault to the first bodies."""
    return lambda body, _: fault if body <= count else None


def test_reads_are_what_the_node_has(node: ToyNode, client: Client) -> None:
    block = client.block()
    assert (block.number, block.hash) == (TIP, header(TIP).hash)
    assert client.block(5).parent_hash == header(5).parent_hash
    expected = int(str(node.result("eth_getBalance", ["0x" + ALICE.hex(), "latest"])), 16)
    assert client.balance(ALICE) == client.at(TIP - 1).balance(ALICE) == expected > 0
    assert client.code(ALICE) == CODES[ALICE]
    with pytest.raises(NoSuchBlock, match=hex(10**6)):
        client.block(10**6)
    with pytest.raises(NoSuchBlock, match=hex(10**6)):
        client.balance(ALICE, 10**6)
    assert client.commit == 0


def test_a_batch_is_one_body(node: ToyNode, client: Client) -> None:
    with client.batch() as batch:
        values = [batch.code(each) for each in ADDRESSES]
        unknown = batch.rpc("no_such_method")
        missing = batch.block(10**6)
    assert node.bodies == 1
    assert [each.value for each in values] == [CODES.get(each, b"") for each in ADDRESSES]
    assert batch.snapshot is None
    with pytest.raises(ErrorAnswer, match="-32601"):
        unknown.value  # noqa: B018, it raises
    with pytest.raises(NoSuchBlock):
        missing.value  # noqa: B018, it raises
    with client.batch():
        pass
    assert node.bodies == 1


def test_a_pin_is_the_latest_block(node: ToyNode, client: Client) -> None:
    pinned = client.pin()
    node.tip += 1
    assert client.block().number == TIP + 1
    pinned.balance(ALICE)
    assert node.asked[-1] == (
        "eth_getBalance",
        ["0x" + ALICE.hex(), {"blockHash": "0x" + header(TIP).hash.hex()}],
    )


def test_freshness_is_not_taken_for_granted(client: Client) -> None:
    for wanted in (client.at_least(commit=1), client.at_least(flashblock=(1, 0))):
        with pytest.raises(StaleEndpoint, match="names no snapshot"):
            wanted.chain_id()


@each_case("fault", FAULTS)
def test_a_read_is_repeated(fault: ToyResponse) -> None:
    with toy_node(ToyNode(weather=failing(3, fault))) as node, Client(node.url) as client:
        assert client.chain_id() == 0x2105
        assert node.bodies == 4


def test_a_read_is_repeated_if_its_response_is_a_rate_limit(node: ToyNode) -> None:
    limited = json.dumps({"jsonrpc": "2.0", "id": 1, "error": LIMITED}).encode()
    node.weather = failing(2, ToyResponse(200, limited, NOW))
    with Client(node.url) as client:
        assert client.chain_id() == 0x2105
    assert node.bodies == 3


@each_case(
    "fault, kind",
    [
        (FAULTS[0], RefusedAnswer), (FAULTS[1], RefusedAnswer), (FAULTS[3], NotAnAnswer),
        (FAULTS[5], Unreachable),
    ],
)  # fmt: skip
def test_repetitions_are_bounded(fault: ToyResponse, kind: type[EndpointError]) -> None:
    with (
        toy_node(ToyNode(weather=failing(1000, fault))) as node,
        Client(node.url, tries=3) as client,
    ):
        with pytest.raises(kind):
            client.chain_id()
        assert node.bodies == 3


def test_a_pause_beyond_the_timeout_is_not_waited_for(node: ToyNode) -> None:
    node.weather = failing(1000, ToyResponse(503, b"", {"Retry-After": "60"}))
    with Client(node.url, timeout=50) as client, pytest.raises(RefusedAnswer):
        client.chain_id()
    assert node.bodies == 1


@each_case("fault", FAULTS)
def test_a_transaction_is_sent_once(fault: ToyResponse) -> None:
    with (
        toy_node(ToyNode(weather=lambda body, _: None if body == 1 else fault)) as node,
        Client(node.url) as client,
    ):
        client.chain_id()
        refused_before = RefusedAnswer if fault.status == 429 else OutcomeUnknown
        with pytest.raises(refused_before):
            client.send_raw(b"\2")
        assert node.bodies == 2
        with pytest.raises(ForeblockError):
            client.rpc("eth_sendTransaction", {})
        assert node.bodies == 3


@each_case("method, sent", [("eth_chainId", 3), ("eth_sendTransaction", 2)])
def test_a_transaction_is_sent_once_if_a_kept_connection_is_closed(method: str, sent: int) -> None:
    """The endpoint closes it after the second request, which a read repeats at once."""
    received: list[bytes] = []

    tasks: list[asyncio.Task[None] | None] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
                received.append(await reader.readexactly(length))
                if len(received) == 2:
                    break
                writer.write(RESULT)
        writer.close()

    async def body() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, AsyncClient(url, tries=1) as client:
            await client.chain_id()
            with suppress(OutcomeUnknown):
                await client.rpc(method, is_idempotent=method == "eth_chainId")
        await asyncio.gather(*filter(None, tasks))

    asyncio.run(body())
    assert len(received) == sent


def failed(code: int, message: str, data: object = None) -> Callable[[list[Any]], object]:
    def fail(_: list[Any]) -> object:
        raise ToyError({"code": code, "message": message, "data": data})

    return fail


@each_case("code", [-32601, -32602])
def test_a_node_without_the_synchronous_method_is_polled(code: int) -> None:
    polls: list[Any] = []

    def receipt(params: Any) -> object:  # noqa: ANN401
        polls.append(params)
        return RECEIPT if len(polls) > 2 else None

    methods = {
        "eth_sendRawTransactionSync": failed(code, "unknown"),
        "eth_sendRawTransaction": lambda _: "0x" + HASH.hex(),
        "eth_getTransactionReceipt": receipt,
    }
    with toy_endpoint(methods) as url, Client(url) as client:
        assert client.send_raw_sync(b"\2").transaction_hash == HASH
        assert polls == [["0x" + HASH.hex()]] * 3


def test_a_transaction_without_a_receipt_in_time() -> None:
    methods = {
        "eth_sendRawTransaction": lambda _: "0x" + HASH.hex(),
        "eth_getTransactionReceipt": lambda _: None,
    }
    with toy_endpoint(methods) as url, Client(url) as client:
        with pytest.raises(SyncTimedOut) as caught:
            client.send_raw_sync(b"\2", seconds=0.001)
        assert caught.value.hash == HASH
    at_node = {"eth_sendRawTransactionSync": failed(4, "timeout", "0x" + HASH.hex())}
    with toy_endpoint(at_node) as url, Client(url) as client:
        with pytest.raises(SyncTimedOut) as caught:
            client.send_raw_sync(b"\2")
        assert caught.value.hash == HASH


@each_case(
    "code, message, data, output, reason",
    [
        (3, "execution reverted: no", "0x01", b"\1", "no"),
        (-32000, "execution reverted", "0x01", b"\1", ""),
        (-32000, "execution reverted", None, b"", ""),
        (3, "execution reverted", f"0x4e487b71{1:064x}", None, "assert(false)"),
    ],
)  # fmt: skip
def test_a_revert_has_its_reason(
    code: int, message: str, data: str | None, output: bytes | None, reason: str
) -> None:
    with toy_endpoint({"eth_call": failed(code, message, data)}) as url, Client(url) as client:
        with pytest.raises(Reverted) as caught:
            client.call(ALICE, "f()")
        assert caught.value.reason == reason
        assert output is None or caught.value.output == output


def test_a_request_without_a_block_names_none() -> None:
    unknown = failed(-32000, "header for hash not found")
    refused = pytest.raises(ErrorAnswer, match="header for hash not found")
    with (
        toy_endpoint({"eth_getTransactionReceipt": unknown}) as url,
        Client(url) as client,
        refused,
    ):
        client.receipt(HASH)


def test_a_result_of_another_shape_names_the_field() -> None:
    wrong = {"eth_getTransactionReceipt": lambda _: {**RECEIPT, "gasUsed": "many"}}
    refused = pytest.raises(RefusedAnswer, match="eth_getTransactionReceipt: gasUsed: ")
    with toy_endpoint(wrong) as url, Client(url) as client, refused:
        client.receipt(HASH)


def test_secrets_of_the_url_are_in_no_message() -> None:
    def refused(_: str, __: Sequence[Any]) -> object:
        raise refusal(-32000, "the key 0123456789abcdef is not valid")

    def reply(request: HttpRequest) -> ToyResponse:
        return ToyResponse(body=answered(refused, request.body))

    with http_endpoint(reply) as url, Client(f"{url}/v3/0123456789abcdef") as client:
        for ask in (client.chain_id, client.block, lambda: client.send_raw(b"\2")):
            with pytest.raises(ForeblockError) as caught:
                ask()
            assert "0123456789abcdef" not in f"{caught.value!r} {caught.value}"


class Instances:
    """Instances of a foreblock behind one address: each has a commit, and serves a request."""

    def __init__(self, *commits: int) -> None:
        self.commits = list(commits)
        self.demanded: list[str | None] = []

    def reply(self, request: HttpRequest) -> ToyResponse:
        demanded = request.headers["Foreblock-Min-Commit"]
        self.demanded.append(demanded)
        commit = self.commits.pop(0)
        if int((demanded or "0").split(";")[0]) > commit:
            said = f"commit {demanded} is not here yet, this instance is at {commit}\n"
            return ToyResponse(503, said.encode(), NOW)
        shown = {"Foreblock-Snapshot": f"commit={commit}; latest=0x5:0x{HASH.hex()}"}
        return ToyResponse(200, answered(lambda *_: hex(commit), request.body), shown)


def test_responses_never_go_backwards() -> None:
    instances = Instances(7, 5, 6, 8, 8)
    with http_endpoint(instances.reply) as url, Client(url) as client:
        assert [client.chain_id(), client.at("safe").chain_id(), client.chain_id()] == [7, 8, 8]
        assert instances.demanded == [None, "7", "7", "7", "8"]
        assert client.commit == 8


def test_a_chain_that_begins_again_is_accepted_after_one_refusal() -> None:
    instances = Instances(7, 1, 1, 1, 1, 2)
    with http_endpoint(instances.reply) as url, Client(url) as client:
        assert client.chain_id() == 7
        with pytest.raises(StaleEndpoint, match="commit 7 is not here yet"):
            client.chain_id()
        assert client.chain_id() == 2


def test_a_transaction_demands_only_what_the_caller_demands() -> None:
    instances = Instances(7, 5, 5)
    with http_endpoint(instances.reply) as url, Client(url) as client:
        client.chain_id()
        client.rpc("eth_sendTransaction", {})
        with pytest.raises(StaleEndpoint):
            client.at_least(commit=9).rpc("eth_sendTransaction", {})
        assert instances.demanded == [None, None, "9"]


def test_a_demand_with_a_wait_is_refused_at_once() -> None:
    instances = Instances(5)
    with http_endpoint(instances.reply) as url, Client(url) as client:
        with pytest.raises(StaleEndpoint, match="has not reached commit 9"):
            client.at_least(commit=9, wait=0).chain_id()
        assert instances.demanded == ["9; wait=0"]
