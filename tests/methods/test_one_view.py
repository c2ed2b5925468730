"""All requests of one body are answered from one commit."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.methods import make_table
from foreblock.methods.table import MethodFunction
from foreblock.rpc.batch import Limits
from foreblock.rpc.dispatch import Dispatcher
from foreblock.rpc.error_codes import fault_of
from foreblock.scheduling.reply import Reply, Text
from foreblock.settings import Settings
from support.chains.builder import ChainBuilder
from support.chains.profiles import MERGED
from support.payloads.bytecode import returning
from support.servers.asking import ANYBODY, body_of
from support.servers.long_work import scheduler

PAID = "0x" + "77" * 20
GENESIS = json.dumps(
    {
        "config": MERGED | {"shanghaiTime": 0},
        "difficulty": "0x0",
        "gasLimit": "0x1c9c380",
        "timestamp": "0x0",
        "baseFeePerGas": "0x7",
        "alloc": {},
    }
).encode()
GWEI = 10**9


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[ChainBuilder]:
    builder = ChainBuilder(tmp_path / "store", GENESIS)
    yield builder
    builder.store.close()


def grow(chain: ChainBuilder) -> None:
    """Add a block that pays one gwei: height and balance correspond."""
    chain.add(withdrawals=[(0, 0, bytes.fromhex(PAID[2:]), 1)])


class Interrupting:
    """A service whose chain grows by a block after every single method."""

    def __init__(self, chain: ChainBuilder, ledger: Ledger) -> None:
        self._chain = chain
        methods = make_table(Settings(), scheduler(5_000)).functions
        self.dispatcher = Dispatcher(
            {name: partial(self._run, method) for name, method in methods.items()},
            ledger.view,
            partial(fault_of, dialect="preconf"),
            Limits(),
        )

    def _run(self, method: MethodFunction, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        result = method(view, raw)
        grow(self._chain)
        return result

    def ask(self, body: object) -> tuple[Any, str]:
        """Return the response and its header line."""

        async def answer() -> Reply:
            reply = self.dispatcher.answer(json.dumps(body).encode(), ANYBODY)
            return reply if isinstance(reply, Reply) else await reply

        reply = asyncio.run(answer())
        return json.loads(body_of(reply)), reply.headers.decode()


def asked(method: str, *params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


TO = "0x00000000000000000000000000000000000c0de0"
SEES: dict[str, tuple[dict[str, object], Callable[[Any], int]]] = {
    "balance": (asked("eth_getBalance", PAID, "latest"), lambda it: int(it, 16) // GWEI),
    "block": (asked("eth_getBlockByNumber", "latest", False), lambda it: int(it["number"], 16)),
    "number": (asked("eth_blockNumber"), lambda it: int(it, 16)),
    "call": (
        asked("eth_call", {"to": TO}, "latest", {TO: {"code": returning("NUMBER")}}),
        lambda it: int(it, 16),
    ),
    "balance in a call": (
        asked(
            "eth_call", {"to": TO}, "pending",
            {TO: {"code": returning(bytes.fromhex(PAID[2:]), "BALANCE")}},
        ),
        lambda it: int(it, 16) // GWEI,
    ),
}  # fmt: skip


def test_batch_never_mixes_commits(chain: ChainBuilder) -> None:
    grow(chain)
    service = Interrupting(chain, Ledger(chain.store))
    for expected in (1, 1 + len(SEES)):
        answers, headers = service.ask([body for body, _ in SEES.values()])
        seen = [
            height(answer["result"])
            for answer, (_, height) in zip(answers, SEES.values(), strict=True)
        ]
        assert seen == [expected] * len(SEES)
        assert f"latest={expected:#x}:0x" in headers


def test_requests_of_their_own_see_the_chain_grow(chain: ChainBuilder) -> None:
    """The chain does grow in between: with a view each, the test above would fail."""
    service = Interrupting(chain, Ledger(chain.store))
    for expected, (body, height) in enumerate(SEES.values()):
        answer, headers = service.ask(body)
        assert height(answer["result"]) == expected
        assert f"latest={expected:#x}:0x" in headers


def test_header_names_the_commit(chain: ChainBuilder) -> None:
    service = Interrupting(chain, Ledger(chain.store))
    with chain.store.view() as view:
        commit, latest = view.heads.commit, view.heads.latest
    assert latest is not None
    _, headers = service.ask(asked("eth_blockNumber"))
    assert headers == f"Foreblock-Snapshot: commit={commit}; latest=0x0:0x{latest[1].hex()}\r\n"


def test_header_can_be_left_out(chain: ChainBuilder) -> None:
    service = Interrupting(chain, Ledger(chain.store, announce=False))
    assert service.ask(asked("eth_blockNumber"))[1] == ""


def test_view_is_let_go_before_the_answer(chain: ChainBuilder) -> None:
    views: list[LedgerView] = []
    ledger = Ledger(chain.store)

    def note(view: LedgerView, _: Raw) -> bytes:
        views.append(view)
        return b"1"

    dispatcher = Dispatcher(
        {"note": note}, ledger.view, partial(fault_of, dialect="preconf"), Limits()
    )
    dispatcher.answer(json.dumps(asked("note")).encode(), ANYBODY)
    with pytest.raises(Exception, match="the store is closed"):
        views[0].state(views[0].latest).balance(bytes(20))
