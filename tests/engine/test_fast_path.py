"""Balances from the bytes of a request to the bytes of its response."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import FastPath, Store
from support.payloads.small_store import ALICE, BOB, append, balance
from support.servers.asking import request

OPENING, DATE, SNAPSHOT, HEADERS = b"opening\r\n", b"date\r\n", b"snapshot\r\n", b"headers\r\n"

NO_CALLS: dict[str, Any] = {
    "batch_items": 1, "batch_bytes": 1, "batch_us": 1, "call_gas": 0, "call_us": 0,
    "step_us": 0,
}  # fmt: skip


@given(st.integers(0, 2**256 - 1) | st.integers(0, 255).map(lambda bits: 1 << bits))
def test_every_balance_is_written_as_python_writes_it(amount: int) -> None:
    with TemporaryDirectory() as folder, Store(folder, write=True) as store:
        append(store, balance(ALICE, amount))
        fast_path = FastPath(store, **NO_CALLS)
        with store.view() as view:
            fast_path.set_snapshot(view.heads, SNAPSHOT, 0)
        for who, held in ((ALICE, amount), (BOB, 0)):
            body = request("eth_getBalance", f"0x{who.hex()}", "latest")
            fast_path.cache_head(b"head", len(body), OPENING, HEADERS)
            found = fast_path.answer(b"head\r\n\r\n" + body, DATE)
            answer = b'{"jsonrpc":"2.0","id":1,"result":"0x%x"}' % held
            length = b"Content-Length: %d\r\n\r\n" % len(answer)
            assert found == OPENING + DATE + SNAPSHOT + HEADERS + length + answer


def test_batch_is_given_up_when_it_takes_too_long(tmp_path: Path) -> None:
    item = request("eth_getBalance", f"0x{ALICE.hex()}", "latest")
    body = b"[%b,%b]" % (item, item)
    with Store(str(tmp_path / "store"), write=True) as store:
        append(store, balance(ALICE, 1))
        for batch_us, answered in ((0, False), (10**6, True)):
            bounds = NO_CALLS | {"batch_items": 2, "batch_bytes": 1000, "batch_us": batch_us}
            fast_path = FastPath(store, **bounds)
            with store.view() as view:
                fast_path.set_snapshot(view.heads, b"", 0)
            fast_path.cache_head(b"head", len(body), b"", b"")
            assert (fast_path.answer(b"head\r\n\r\n" + body, b"") is not None) == answered
