"""A dev chain under load in one process, faster than real time, with a concurrent reader.

The sequencer, its store and a service that answers requests are the real ones; only the clock is
driven, so that an hour of the chain takes minutes. Regular samples show growth. The store admits
few readers, so that a view that is never closed ends the run.
"""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from foreblock._engine import View
from foreblock.bench.measure import anonymous_mib
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.partial_rows import (
    block_prefix,
    decode_numbers,
    made_of_key,
    partial_of_key,
    position_of_key,
    positions_prefix,
)
from foreblock.sequencer.load import Load
from support.chains.dev_chain import ACCOUNTS, DevChain
from support.servers.asking import Asker, asker

BLOCK_MS: Final = 2_000
INTERVAL_MS: Final = 200
# Two of the writer's blocks, its own check of the store, a request, and a lingering reader.
VIEWS_AT_ONCE: Final = 5
LINGERS: Final = 20  # blocks between lingering views
LINGERS_FOR: Final = 2  # blocks; longer than any request may take
CACHED: Final = 1 << 20  # bytes, so that caches are soon full
ROWS: Final = 1 << 24  # more than there are
KEEP_STATES: Final = 128  # blocks
OF_PAST: Final = ("deltas", "partials", "nodes", "node_changes", "trash")


@dataclass(frozen=True)
class Sample:
    """The measurements after a number of blocks."""

    block: int
    transactions: int
    requests: int
    memory_mib: float  # of the process, without the file's pages
    objects: int  # tracked by the garbage collector
    store_bytes: int  # in use
    file_bytes: int  # size of the file, including free pages
    oldest_place: int  # the lowest block whose partial blocks are found by position
    oldest_row: int  # the lowest block with rows of partial blocks beside its body
    oldest_partial: int  # the lowest block with known partial blocks in the store
    hash_rows: int  # hashes of blocks and of partial blocks
    earliest: int  # the oldest block whose state can be read
    pages_of_past: int  # of the store, with data of limited retention


def live(folder: Path, blocks: int, tps: int, every: int) -> Iterator[Sample]:
    """Run a chain for this many blocks, with periodic samples."""
    load = Load(tps, ACCOUNTS, 31337)
    chain = DevChain(folder, load=load, max_readers=VIEWS_AT_ONCE, keep_states=KEEP_STATES)
    with asker(Ledger(chain.store, clock=chain.clock), cached_bytes=CACHED) as client:
        reader, transactions, lingering = Reader(client), 0, Lingering()
        for block in range(1, blocks + 1):
            for _ in range(BLOCK_MS // INTERVAL_MS):
                flashblocks = chain.run(INTERVAL_MS)
                transactions += sum(len(each.diff.transactions) for each in flashblocks)
                chain.published.clear()
                reader.ask_something()
            lingering.next(chain, block)
            if block % every == 0:
                yield _sample(chain, transactions, reader.requests)
        lingering.end()
    chain.writer.close()
    chain.store.close()


class Lingering:
    """A reader that keeps a view open over many commits, and always sees the same."""

    def __init__(self) -> None:
        self._view: View | None = None
        self._saw = 0

    def next(self, chain: DevChain, block: int) -> None:
        """Open or close a view after this block."""
        if block % LINGERS == 0:
            self.end()
            self._view = chain.store.view()
            self._saw = self._look(self._view)
        elif block % LINGERS == LINGERS_FOR:
            self.end()

    def end(self) -> None:
        """Check again, and close."""
        if self._view is not None:
            assert self._look(self._view) == self._saw
            self._view.close()
            self._view = None

    def _look(self, view: View) -> int:
        assert view.heads.pending is not None
        return sum(view.state_of_partial(view.heads.pending).balance(it.address) for it in ACCOUNTS)


class Reader:
    """Reads pending and formerly pending blocks; every response must be valid."""

    def __init__(self, client: Asker) -> None:
        self._client = client
        self._random = Random(7)
        self._seen: list[str] = []  # hashes of blocks that were pending
        self.requests = 0

    def ask_something(self) -> None:
        """A few requests."""
        block = self._ask("eth_getBlockByNumber", "pending", bool(self._random.randrange(2)))
        self._seen = [*self._seen[-200:], block["hash"]]
        who = f"0x{self._random.choice(ACCOUNTS).address.hex()}"
        assert int(self._ask("eth_getBalance", who, "pending"), 16) > 0
        assert self._ask("eth_call", {"to": who}, "latest") == "0x"
        pinned = {"blockHash": self._random.choice(self._seen)}
        assert int(self._ask("eth_getBalance", who, pinned), 16) > 0
        for each in block["transactions"][-1:]:
            found = each if isinstance(each, str) else each["hash"]
            receipt = self._ask("eth_getTransactionReceipt", found)
            assert receipt["blockHash"] == block["hash"]
        number = self._random.randrange(int(block["number"], 16))
        assert self._ask("eth_getBlockByNumber", hex(number), False)["number"] == hex(number)

    def _ask(self, method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
        self.requests += 1
        return self._client.ask(method, *params)


def _sample(chain: DevChain, transactions: int, requests: int) -> Sample:
    gc.collect()
    with chain.store.view() as view:
        return _sample_of(view, chain, transactions, requests)


def _sample_of(view: View, chain: DevChain, transactions: int, requests: int) -> Sample:
    assert view.heads.latest is not None
    latest, _ = view.heads.latest
    places = view.rows(positions_prefix(), 1)
    return Sample(
        block=latest,
        transactions=transactions,
        requests=requests,
        memory_mib=anonymous_mib(),
        objects=len(gc.get_objects()),
        store_bytes=chain.store.used_bytes,
        file_bytes=(chain.folder / "data.mdb").stat().st_size,
        oldest_place=position_of_key(places[0][0])[0],
        oldest_row=_lowest(latest, lambda block: _has_rows(view, block)),
        oldest_partial=_lowest(latest, lambda block: _has_partials(view, block)),
        hash_rows=len(view.rows(b"h", ROWS)),
        earliest=view.heads.earliest,
        pages_of_past=sum(pages for name, _, pages, _ in chain.store.sizes()[3] if name in OF_PAST),
    )


def _lowest(latest: int, holds: Callable[[int], bool]) -> int:
    return next(block for block in range(1, latest + 1) if holds(block))


def _has_rows(view: View, block: int) -> bool:
    keys = (key for key, _ in view.rows(block_prefix(block), ROWS))
    return any(partial_of_key(key)[1] in (b"h", b"w") for key in keys)


def _has_partials(view: View, block: int) -> bool:
    made_of = view.row(made_of_key(block))
    assert made_of is not None, "a sealed block finds its body for ever"
    return any(view.partial(number) is not None for number in decode_numbers(made_of))
