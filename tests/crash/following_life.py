"""A deterministic sequence of events for a follower, and a follower that processes it.

Run as `python -m crash.following_life FOLDER POINT COUNT`: it follows on the store in that folder
and kills itself with SIGKILL around the commit of that number, `before` the store commits or
`after` the commit returned, when nothing is published yet. It prints the next event.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from foreblock._engine import Block, Header
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.types import Flashblock
from support.chains.following import Built, Following, Truth

PLAN = [[], [(0, 1), (1, 2)], [(2, 3)], [], [(0, 5)], [(1, 7), (1, 9)]]
OTHER = [[], [(2, 7)], [(1, 8), (0, 9)]]


class Life(NamedTuple):
    """The events in order, and the true final state."""

    events: tuple[Flashblock | Block, ...]
    blocks: tuple[Block, ...]
    roots: dict[bytes, bytes]  # the state root of each partial block, by hash


def life() -> Life:
    """Blocks with a restart that is undone, a dropped tail, a lost message, a block from the
    canonical source, and a reorganisation.
    """
    with TemporaryDirectory() as folder:
        truth = Truth(Path(folder) / "truth")
        jobs: list[Built] = []

        def job(name: str, plan: list[list[tuple[int, int]]], salt: bytes = b"") -> Built:
            jobs.append(truth.job(name, plan, salt=salt))
            return jobs[-1]

        first, stray = job("1p", PLAN), job("1q", OTHER, salt=b"q")
        truth.seal(first)
        second = job("2p", PLAN)
        truth.seal(second, len(PLAN) - 2)
        third = job("3p", OTHER)
        truth.seal(third)
        fourth = job("4p", PLAN)
        truth.seal(fourth)
        truth.rewind(3)
        again = job("4r", OTHER, salt=b"r")
        truth.seal(again)
        fifth = job("5p", PLAN)
        truth.seal(fifth)
        events: tuple[Flashblock | Block, ...] = (
            *first.messages[:3], stray.messages[0], stray.messages[1], *first.messages[3:],
            *second.messages, third.messages[0], third.messages[2], *fourth.messages[:2],
            third.blocks[-1], *fourth.messages[2:], fourth.blocks[-1], again.messages[0],
            again.blocks[-1], *fifth.messages, fifth.blocks[-1],
        )  # fmt: skip
        truth.close()
    roots = {
        message.diff.block_hash: block.header.state_root
        for each in jobs
        for message, block in zip(each.messages, each.blocks, strict=True)
    }
    return Life(events, tuple(truth.blocks[number] for number in sorted(truth.blocks)), roots)


def hear(following: Following, event: Flashblock | Block) -> None:
    """Process an event, and the work behind it."""
    if isinstance(event, Flashblock):
        following.hear(event)
    else:
        following.canonical(event)


Around = Callable[[int], None]


def around_commits(following: Following, before: Around, after: Around) -> None:
    """Run a callback around each commit, with its count."""
    commit, counts = following.writer.commit, iter(range(1, 1 << 20))

    def counted(
        builder: CommitBuilder, latest: Header, pending: int | None, heard_at_ns: int | None
    ) -> None:
        count = next(counts)
        before(count)
        commit(builder, latest, pending, heard_at_ns)
        after(count)

    following.writer.commit = counted  # type: ignore[method-assign]


def main(folder: Path, point: str, count: int) -> None:
    def end(at: int) -> None:
        if at == count:
            os.kill(os.getpid(), signal.SIGKILL)

    following = Following(folder)
    around_commits(following, *((end, _nothing) if point == "before" else (_nothing, end)))
    for number, event in enumerate(life().events):
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        hear(following, event)


def _nothing(_: int) -> None:
    pass


class Heads(NamedTuple):
    """The position of a follower."""

    latest: tuple[int, bytes] | None
    pending: tuple[int, int, bytes] | None  # block, index and hash
    commit: int  # the last number


def heads(following: Following) -> Heads:
    """The heads in its store."""
    with following.store.view() as view:
        pending = None if view.heads.pending is None else view.partial(view.heads.pending)
        return Heads(
            view.heads.latest,
            None if pending is None else (pending.block, pending.index, pending.hash),
            view.heads.commit,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
