"""Measurements of the engine: reads, commits, calls, sender recovery, import and roots.

The order matters, since most of them share one store. Reads are in `reads`.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Final

from foreblock._engine import Batch, Changes, Env, State, StateTrie, Store
from foreblock.bench import fill, reads
from foreblock.bench.measure import Figure, milliseconds, per_second
from foreblock.ledger.importing.importer import import_files
from foreblock.types import Message, decode_transactions, sign_transaction

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


CALLS: Final = 100_000  # in a round
RECOVERIES: Final = 500  # in a round
ROUNDS: Final = 7
IMPORTS: Final = 5
ROOTS: Final = 9
CHANGED: Final = 1000  # accounts before each root
GAS: Final = 50_000_000
MEGAGAS: Final = 10**6
SECRET: Final = bytes([7]) * 32  # of the sender that is recovered


@dataclass(frozen=True)
class Sizes:
    """Numbers of accounts of the stores."""

    accounts: int = 1_000_000
    small: int = 10_000
    large: int = 10_000_000

    @property
    def filled(self) -> int:
        """Accounts created in total."""
        return 2 * self.accounts + self.small + self.large


def answers(
    folder: Path,
    sizes: Sizes,
    chain: tuple[Path, Path] | None,
    filled: Callable[[int], None],
) -> Iterator[Figure | str]:
    """Measure everything: figures, and remarks that concern several of them.

    `chain` is a genesis and a chain file; without them, import is not measured.
    """
    # First, while the process is small: it reports resident memory.
    counts = (sizes.small, sizes.accounts, sizes.large)
    yield from reads.growth(folder, counts, filled)
    yield from sender_recoveries()
    yield from _import(chain, folder)
    yield from _on_one_store(folder / "store", sizes, filled)


def _import(chain: tuple[Path, Path] | None, folder: Path) -> Iterator[Figure | str]:
    if chain is None:
        yield "import was not measured: give --genesis and --chain"
    else:
        yield import_speed(*chain, folder)


def _on_one_store(folder: Path, sizes: Sizes, filled: Callable[[int], None]) -> Iterator[Figure]:
    accounts = [fill.address(position, sizes.accounts) for position in range(sizes.accounts)]
    with fill.store(folder, sizes.accounts, filled) as store:
        yield reads.account_reads(store, accounts)
        yield reads.reads_with_views(store, accounts)
        yield from call_costs(store, accounts)
        yield from reads.reads_through_deltas(store, accounts)
        yield from flashblock_commits(store, accounts, folder)
        yield from state_roots(store, accounts)


def call_costs(store: Store, accounts: list[bytes]) -> list[Figure]:
    """Calls to an account without code, to a small contract and to one of 24 kB."""
    no_code = _call_rates(store, accounts[len(accounts) // 2])
    small = _call_rates(store, fill.READER_ADDRESS)
    large = _call_rates(store, fill.LARGE_READER_ADDRESS)
    plain = Figure("calls without code", "/s", no_code, "over 500,000")
    one_slot = Figure("calls with one storage read", "/s", small)
    big = Figure("the same in a contract of 24 kB", "/s", large, "at most 1.3 times a small one")
    dearer = one_slot.median / big.median
    return [
        replace(plain, met=plain.median > 500_000),
        one_slot,
        replace(big, met=dearer <= 1.3, remarks=(f"{dearer:.2f} times the cost",)),
    ]


def _call_rates(store: Store, to: bytes) -> list[float]:
    env = fill.env(1)
    message = Message(sender=bytes(20), to=to, gas=GAS)
    with store.view() as view:
        state = view.state(0)

        def call() -> None:
            for _ in range(CALLS):
                state.call(env, message)

        return per_second(call, CALLS, ROUNDS)


def sender_recoveries() -> list[Figure]:
    """Transactions decoded a second, on one thread and on all cores (wall time)."""
    # Each transaction is new: the engine keeps the senders of those that it has decoded.
    threads, nonces = os.cpu_count() or 1, count()
    return [
        Figure("sender recoveries on one thread", "/s", _recovery_rates(1, nonces)),
        Figure(f"sender recoveries on {threads} threads", "/s", _recovery_rates(threads, nonces)),
    ]


def _recovery_rates(threads: int, nonces: Iterator[int]) -> list[float]:
    message, rates = Message(sender=bytes(20), to=bytes(20), gas=21_000, max_fee_per_gas=1), []
    for _ in range(ROUNDS):
        some = islice(nonces, RECOVERIES)
        raws = [sign_transaction(message, 2, 1, nonce, SECRET).raw for nonce in some]
        begun = time.perf_counter()
        decode_transactions(raws, threads)
        rates.append(RECOVERIES / (time.perf_counter() - begun))
    return rates


def import_speed(genesis: Path, chain: Path, folder: Path) -> Figure:
    """Whole imports of the chain, each into a new store, durable commits included."""
    rates, gas = [], 0
    for attempt in range(IMPORTS):
        begun = time.perf_counter()
        imported = import_files(genesis, chain, folder / f"import-{attempt}", None, lambda _: None)
        gas = imported.progress.gas
        rates.append(gas / MEGAGAS / (time.perf_counter() - begun))
    remark = f"{gas / MEGAGAS:.0f} Mgas a run, {chain.stat().st_size / 1024:.0f} kB of blocks"
    return Figure("import", "Mgas/s", rates, remarks=(remark,))


def state_roots(store: Store, accounts: list[bytes]) -> list[Figure]:
    """Roots after 1,000 random accounts changed, nodes read from the store each time.

    The nodes of the whole state are built first, which is timed as well. The first round
    after that brings their pages in and is not counted.
    """
    built = milliseconds(lambda: _store_all_nodes(store))
    generator = random.Random(5)  # noqa: S311 - a fixed sample, not a secret
    samples = []
    for _ in range(ROOTS + 1):
        changes = _credit(store, generator.sample(accounts, CHANGED))
        trie = store.trie()
        samples.append(milliseconds(partial(_root, trie, changes)))
    root = Figure(
        f"state root, {CHANGED:,} of {len(accounts):,} accounts changed", "ms", samples[1:]
    )
    return [
        Figure("all trie nodes built and stored", "ms", [built]),
        replace(root, aim="at most 20 ms", met=root.median <= 20),
    ]


def _root(trie: StateTrie, changes: Changes) -> bytes:
    trie.apply(changes)
    return trie.root()


def _store_all_nodes(store: Store) -> None:
    store.trie()
    batch = store.batch()
    batch.fold_all()
    store.commit(batch)


def _credit(store: Store, changed: list[bytes]) -> Changes:
    with store.view() as view:
        latest = view.heads.latest
        assert latest is not None
        overlay = view.state(latest[0]).overlay()
        for address in changed:
            overlay.credit(address, 1)
        return overlay.take(view.heads.commit + 1)
