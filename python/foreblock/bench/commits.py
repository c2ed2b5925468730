"""The cost of a durable flashblock commit, beside a probe of the same disk."""

import os
import random
from dataclasses import replace
from functools import partial
from pathlib import Path

from foreblock._engine import Batch, Changes, Env, State, Store
from foreblock.bench import fill
from foreblock.bench.measure import Figure, milliseconds
from foreblock.types import Message

TRANSFERS = 100
TOKEN_TRANSFERS = 100
INDICES = 10
BLOCKS = 12
# Rows of a flashblock of 200 transactions besides state: 146 bytes of each raw transaction and
# 800 of its rendered form, in rows that fill four pages.
RAW_BYTES = 146 * 200
RENDERED_BYTES = 800 * 200
ROW_BYTES = 4 * 4096 - 16
SLICE = 400


def flashblock_commits(store: Store, accounts: list[bytes], folder: Path) -> list[Figure]:
    """Partial blocks of 200 real transactions each, sealed every tenth, folded between.

    Only `commit` is timed: the transactions have run before, as in a sequencer. A probe (4 kB
    appended and synced) precedes each commit, so that both see the same disk.
    """
    traffic = _Traffic(accounts)
    commits, probes = [], []
    with (folder / "probe").open("wb", buffering=0) as probe:
        for block in range(BLOCKS):
            for index in range(INDICES):
                batch = traffic.flashblock(store, index)
                probes.append(milliseconds(partial(_sync, probe.fileno())))
                commits.append(milliseconds(partial(store.commit, batch)))
                store.maintain(SLICE)
            traffic.seal(store, block)
    return _figures(commits, probes)


def _figures(commits: list[float], probes: list[float]) -> list[Figure]:
    probe = Figure("fdatasync of 4 kB", "ms", probes)
    bound = 2 * probe.median + 1
    commit = Figure("flashblock commit, 200 transactions", "ms", commits)
    remark = f"p90 {commit.percentile(90):.2f}, p99 {commit.percentile(99):.2f} ms"
    aim = f"at most 2 fdatasync + 1 ms = {bound:.2f}"
    met = commit.median <= bound
    return [probe, replace(commit, aim=aim, met=met, remarks=(remark,))]


def _sync(descriptor: int) -> None:
    os.write(descriptor, bytes(4096))
    os.fdatasync(descriptor)


class _Traffic:
    """Flashblocks of transfers and token transfers between random accounts."""

    def __init__(self, accounts: list[bytes]) -> None:
        self.accounts = accounts
        self.generator = random.Random(4)  # noqa: S311 - the same traffic every time
        self.tip: int | None = None

    def flashblock(self, store: Store, index: int) -> Batch:
        """A batch with the next partial block, executed and rendered."""
        with store.view() as view:
            latest = view.heads.latest
            assert latest is not None
            number = latest[0] + 1
            state = view.state(latest[0]) if self.tip is None else view.state_of_partial(self.tip)
            batch = store.batch()
            changes = self.run(state, fill.env(number), batch.next)
        on_block = latest[0] if self.tip is None else None
        block_hash = self.generator.randbytes(32)
        self.tip = batch.extend(
            number, index, block_hash, changes, on_block=on_block, parent=self.tip
        )
        batch.pending(self.tip)
        self.rows(batch, b"raw", RAW_BYTES)
        self.rows(batch, b"rendered", RENDERED_BYTES)
        return batch

    def run(self, state: State, env: Env, number: int) -> Changes:
        overlay = state.overlay()
        for position in range(TRANSFERS + TOKEN_TRANSFERS):
            sender, receiver = self.generator.sample(self.accounts, 2)
            if position < TRANSFERS:
                message = Message(sender=sender, to=receiver, value=1, gas=21_000)
            else:
                data = receiver.rjust(32, b"\0")
                message = Message(sender=sender, to=fill.TOKEN_ADDRESS, data=data, gas=100_000)
            outcome = overlay.run(env, message)
            assert outcome.status == "success", outcome
        return overlay.take(number)

    def rows(self, batch: Batch, kind: bytes, size: int) -> None:
        assert self.tip is not None
        for row in range(-(-size // ROW_BYTES)):
            key = self.tip.to_bytes(8, "big") + kind + row.to_bytes(2, "big")
            batch.put(key, self.generator.randbytes(min(ROW_BYTES, size - row * ROW_BYTES)))

    def seal(self, store: Store, block: int) -> None:
        assert self.tip is not None
        batch = store.batch()
        batch.seal(self.tip, block.to_bytes(32, "big"))
        store.commit(batch)
        self.tip = None
