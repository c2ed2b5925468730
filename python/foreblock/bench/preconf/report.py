"""Figures from log lines and from the observations of clients. No I/O."""

import itertools
import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec import Struct, convert

from foreblock.bench.measure import Figure
from foreblock.bench.rpc.rounds import LoadResult
from foreblock.clock import SECOND_NS

MILLISECOND_NS: Final = 10**6
MEDIAN_MS: Final = 10.0  # what a pre-confirmation may take from its moment to a reader
P99_MS: Final = 50.0
SENT_MEDIAN_MS: Final = 300.0  # from a client that sends to one that reads
KEEPS_UP: Final = 0.99  # of what is sent, in what was closed

EVENT: Final = "flashblock"

Position = tuple[int, int]  # block and index of a flashblock


class Closed(Struct, frozen=True):
    """A flashblock: when it was due, begun and committed, in monotonic nanoseconds."""

    block: int
    index: int
    transactions: int
    waiting: int  # in the pool, afterwards
    due_ns: int
    begun_ns: int
    committed_ns: int
    commit_ns: int  # how long the commit alone took

    @property
    def place(self) -> tuple[int, int]:
        return self.block, self.index


def closed(log: Iterable[str]) -> Iterator[Closed]:
    """The flashblocks in a JSON log."""
    for line in log:
        if line.startswith("{"):
            event = json.loads(line)
            if event.get("event") == EVENT:
                yield convert(event, Closed)


Span = Callable[[Closed], int]


@dataclass(frozen=True)
class PreconfRun:
    """The observations of a run."""

    closed: Sequence[Closed]  # after the warm-up
    polled: Mapping[Position, int]  # when each flashblock was first seen
    heard: Mapping[Position, int]  # when it arrived over the feed
    paid: Sequence[tuple[int, int, int]]  # when payments were sent, accepted, readable
    sent: tuple[int, int, int]  # transactions, answers, errors
    readers: LoadResult
    probes: Sequence[float]
    writer_cpu: float  # of one core
    tps: int


def first_seen(sightings: Sequence[Sequence[int]]) -> dict[Position, int]:
    """When each flashblock was first seen, from (time, block, index)."""
    first: dict[Position, int] = {}
    for at_ns, block, index in sightings:
        first.setdefault((block, index), at_ns)
    return first


def figures(seen: PreconfRun) -> list[Figure]:
    """The figures of a run, the most important first."""
    accepted = [milliseconds(accepted - sent) for sent, accepted, _ in seen.paid]
    readable = [milliseconds(readable - sent) for sent, _, readable in seen.paid]
    found = [
        soon(_since_due("due to readable over HTTP", seen.closed, seen.polled)),
        _since_due(
            "the same without the commit", seen.closed, seen.polled, lambda it: it.commit_ns
        ),
        _since_due("due to arrived over the feed", seen.closed, seen.heard),
        _of("due to committed", seen.closed, lambda it: it.committed_ns - it.due_ns),
        _of("due to begun", seen.closed, lambda it: it.begun_ns - it.due_ns),
        _of("begun to committed", seen.closed, lambda it: it.committed_ns - it.begun_ns),
        _of("of that, the commit", seen.closed, lambda it: it.commit_ns),
        Figure("fdatasync of 4 kB", "ms", seen.probes),
        Figure("sent to accepted", "ms", accepted),
        _with_aim(Figure("sent to readable at pending", "ms", readable)),
    ]
    return [each for each in found if each.samples]


def remarks(seen: PreconfRun) -> Iterator[str]:
    """Remarks beside the figures, such as whether the sequencer kept up."""
    sent, answers, errors = seen.sent
    rate, waiting = included_a_second(seen.closed), [each.waiting for each in seen.closed]
    kept_up = "kept up" if rate >= seen.tps * KEEPS_UP else "did not keep up"
    yield (
        f"the sequencer {kept_up}: {rate:,.0f} of {seen.tps:,} transactions a second included; "
        f"{sent:,} sent, {answers:,} answered, {errors:,} refused"
    )
    yield (
        f"waiting after a flashblock: {max(waiting)} at most, {waiting[-1]} at the end; "
        f"{len(seen.closed)} flashblocks, slots missed: {missed(seen.closed)}"
    )
    readers = seen.readers
    yield (
        f"readers: {readers.requests / readers.seconds:,.0f} requests a second, "
        f"median {readers.p50_us / 1e3:.2f} ms, p99 {readers.p99_us / 1e3:.2f} ms, "
        f"{readers.failed} failed; the writer used {seen.writer_cpu:.2f} of a core"
    )
    late = [milliseconds(it.committed_ns - it.due_ns) for it in seen.closed if it.index == 0]
    if late:
        yield (
            "index 0, which comes with the seal of the block before: due to committed "
            f"{statistics.median(late):.2f} ms (median of {len(late)})"
        )


def included_a_second(closed: Sequence[Closed]) -> float:
    """Included transactions per second, without deposits."""
    if len(closed) < 2:
        return 0.0
    included = sum(each.transactions for each in closed[1:] if each.index)
    return included * SECOND_NS / (closed[-1].committed_ns - closed[0].committed_ns)


def missed(closed: Sequence[Closed]) -> int:
    """Missing flashblocks of complete blocks, compared with the fullest block."""
    by_block = [len(list(group)) for _, group in itertools.groupby(closed, lambda it: it.block)]
    whole = by_block[1:-1]
    return sum(max(whole) - each for each in whole) if whole else 0


def _since_due(
    question: str,
    closed: Sequence[Closed],
    seen: Mapping[Position, int],
    less: Span = lambda _: 0,
) -> Figure:
    unseen = sum(each.place not in seen for each in closed)
    remark = (f"{unseen} never seen",) if unseen else ()
    samples = [
        milliseconds(seen[each.place] - each.due_ns - less(each))
        for each in closed
        if each.place in seen
    ]
    return Figure(question, "ms", samples, remarks=remark)


def _of(question: str, closed: Sequence[Closed], span: Span) -> Figure:
    return Figure(question, "ms", [milliseconds(span(each)) for each in closed])


def soon(figure: Figure) -> Figure:
    """The figure with the aim of a pre-confirmation."""
    met = bool(figure.samples) and figure.median < MEDIAN_MS and figure.percentile(99) < P99_MS
    return replace(figure, aim=f"median below {MEDIAN_MS:g}, p99 below {P99_MS:g}", met=met)


def _with_aim(figure: Figure) -> Figure:
    met = bool(figure.samples) and figure.median < SENT_MEDIAN_MS
    return replace(figure, aim=f"median below {SENT_MEDIAN_MS:g}", met=met)


def milliseconds(nanoseconds: int) -> float:
    return nanoseconds / MILLISECOND_NS
