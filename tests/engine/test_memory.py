"""Memory stays bounded while reading, calling and importing."""

from pathlib import Path

import pytest

from foreblock._engine import Message, Overlay, Store
from foreblock.bench.fill import env
from foreblock.bench.measure import anonymous_mib

ROUNDS = 5
READS = 10_000
# Allocators keep some freed memory; a leak of 128 bytes per read is 5 MiB.
TOLERATED_MIB = 4.0

ACCOUNT = b"\x0a" * 20
CONTRACT = b"\x0c" * 20
# MSTORE of one word at a high offset, then RETURN of it: 64 kB of memory per call.
CODE = bytes.fromhex("60016201000052602062010000f3")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = Store(str(tmp_path), write=True)
    overlay = Overlay.empty()
    overlay.set(ACCOUNT, balance=10**18)
    overlay.set(CONTRACT, code=CODE)
    batch = opened.batch()
    batch.append(0, bytes(32), overlay.take(batch.draw()))
    opened.commit(batch)
    return opened


def growth(work: list[float]) -> float:
    """Return the growth from the first round, which warms up, to the last one."""
    return work[-1] - work[0]


def test_reads_and_calls_leave_nothing_behind(store: Store) -> None:
    message = Message(sender=ACCOUNT, to=CONTRACT, value=1, gas=1_000_000)
    resident = []
    for _ in range(ROUNDS):
        for _ in range(READS):
            with store.view() as view:
                state = view.state(0)
                state.balance(ACCOUNT)
                state.call(env(1), message)
                state.overlay().run(env(1), message)
        resident.append(anonymous_mib())
    assert growth(resident) < TOLERATED_MIB


def test_blocks_leave_nothing_behind_in_memory(store: Store) -> None:
    resident = []
    block = 0
    for _ in range(ROUNDS):
        for _ in range(60):
            block += 1
            with store.view() as view:
                overlay = view.state(block - 1).overlay()
                for receiver in range(50):
                    to = (block * 50 + receiver).to_bytes(20, "big")
                    overlay.run(env(block), Message(sender=ACCOUNT, to=to, value=1, gas=21_000))
                batch = store.batch()
                changes = overlay.take(batch.draw())
            trie = store.trie()
            trie.apply(changes)
            batch.append(block, block.to_bytes(32, "big"), changes, trie.take())
            batch.fold_all()
            store.commit(batch)
        resident.append(anonymous_mib())
    assert growth(resident) < TOLERATED_MIB
