"""The cost of reading an account: hot, through deltas, and as the state grows."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from foreblock._engine import State, Store
from foreblock.bench import fill
from foreblock.bench.measure import Figure, anonymous_mib, per_second, resident_mib

READS = 200_000
ROUNDS = 7


def account_reads(store: Store, accounts: list[bytes]) -> Figure:
    """Balances of random accounts through Python, one call each."""
    wanted = _shuffled(accounts)
    with store.view() as view:
        rates = _read_all(view.state(0), wanted)
    figure = Figure("account reads through Python", "/s", rates, "over 1,000,000")
    return replace(figure, met=figure.median > 1e6)


def reads_with_views(store: Store, accounts: list[bytes]) -> Figure:
    """Read as a request does: open a view, find the state, read, close."""
    rates = _read_with_views(store, _shuffled(accounts))
    return Figure("the same with a view for each", "/s", rates)


def reads_through_deltas(store: Store, accounts: list[bytes]) -> list[Figure]:
    """Reads of a state that lies 0 to 3 unfolded blocks above the flat table.

    Each block changes 2,000 other accounts, so that nearly every read falls through all
    deltas. Leaves the store with three more blocks, folded.
    """
    wanted = _shuffled(accounts)
    generator = random.Random(2)  # noqa: S311 - a fixed sample, not a secret
    figures = []
    for depth in range(4):
        if depth:
            _append(store, generator.sample(accounts, 2000))
        with store.view() as view:
            rates = _read_all(view.state(depth), wanted)
        figures.append(Figure(f"account reads through {depth} deltas", "/s", rates))
    while store.maintain(100_000):
        pass
    return figures


def _append(store: Store, changed: list[bytes]) -> None:
    with store.view() as view:
        latest = view.heads.latest
        assert latest is not None
        overlay = view.state(latest[0]).overlay()
        for address in changed:
            overlay.credit(address, 1)
        batch = store.batch()
        batch.append(latest[0] + 1, bytes(32), overlay.take(batch.draw()))
    store.commit(batch)


def growth(
    folder: Path, counts: Sequence[int], progress: Callable[[int], None]
) -> Iterator[Figure | str]:
    """The cost of a read in states of these sizes, the smallest first, and resident memory.

    As many distinct accounts are read from each, so that what differs is the tree and its
    pages, not how often an account is read again. The aim is held against a read as a
    request does it; the bare read shows what the larger tree costs in caches.
    """
    bare, requested, remarks = list[Figure](), list[Figure](), []
    for count in counts:
        with fill.store(folder / f"{count}", count, progress) as store:
            wanted = _shuffled(_sample(count, counts[0]))
            with store.view() as view:
                rates = _read_all(view.state(0), wanted)
            bare.append(Figure(f"bare reads at {count:,} accounts", "/s", rates))
            rates = _read_with_views(store, wanted)
            requested.append(Figure(f"reads with views at {count:,} accounts", "/s", rates))
            remarks.append(
                f"{count:,} accounts: {store.used_bytes / 2**20:,.0f} MiB of the file used, "
                f"{resident_mib():,.0f} MiB resident, {anonymous_mib():,.0f} of them not the file's"
            )
    yield from _beside_first(bare)
    *others, largest = _beside_first(requested)
    yield from others
    met = requested[0].median < 2 * largest.median
    yield replace(largest, aim="below 2 times the cost at the small size", met=met)
    yield from remarks


def _beside_first(figures: list[Figure]) -> list[Figure]:
    first, *others = figures
    return [first, *(replace(each, remarks=(_dearer(first, each),)) for each in others)]


def _sample(count: int, distinct: int) -> list[bytes]:
    generator = random.Random(3)  # noqa: S311 - a fixed sample, not a secret
    return [fill.address(at, count) for at in generator.sample(range(count), min(count, distinct))]


def _dearer(small: Figure, large: Figure) -> str:
    return f"{small.median / large.median:.2f} times the cost"


def _shuffled(accounts: list[bytes]) -> list[bytes]:
    """READS of them in random order, as objects that are adjacent in memory."""
    generator = random.Random(1)  # noqa: S311 - a fixed sample, not a secret
    return [bytes(bytearray(address)) for address in generator.choices(accounts, k=READS)]


def _read_all(state: State, wanted: list[bytes]) -> list[float]:
    def read() -> None:
        for address in wanted:
            state.balance(address)

    return per_second(read, len(wanted), ROUNDS)


def _read_with_views(store: Store, wanted: list[bytes]) -> list[float]:
    def read() -> None:
        for address in wanted:
            with store.view() as view:
                view.state(0).balance(address)

    return per_second(read, len(wanted), ROUNDS)
