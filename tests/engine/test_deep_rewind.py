"""A rewind below the window of trie nodes uses memory in proportion to the change, not the
state.
"""

import multiprocessing
import random
import threading
from pathlib import Path
from typing import Self

import pytest

from foreblock._engine import Store
from foreblock.bench import fill

ACCOUNTS = 300_000
BLOCKS = 300
TARGET = 100
MOST_MEGABYTES = 80  # It takes 29; building the nodes of the whole state takes more.


@pytest.mark.heavy
def test_a_deep_rewind_does_not_hold_the_state_in_memory(tmp_path: Path) -> None:
    fill.store(tmp_path / "store", ACCOUNTS).close()
    with Store(str(tmp_path / "store"), write=True, keep_nodes=16, sync=False) as store:
        roots = _append_blocks(store)
    # A new process, whose allocator holds no memory of the setup.
    with multiprocessing.get_context("spawn").Pool(1) as process:
        root, megabytes = process.apply(_rewind, (str(tmp_path / "store"),))
    assert root == roots[TARGET]
    assert megabytes < MOST_MEGABYTES


def _rewind(folder: str) -> tuple[bytes, float]:
    """Rewind to the target; return the root and the growth of anonymous memory."""
    with Store(folder, write=True, keep_nodes=16, sync=False) as store:
        before = _anonymous_megabytes()
        with _Peak() as peak:
            batch = store.batch()
            batch.rewind(TARGET)
            store.commit(batch)
            root = store.trie().root()
    return root, peak.megabytes - before


def _append_blocks(store: Store) -> dict[int, bytes]:
    """Append blocks that each change ten accounts; return the root of each."""
    generator = random.Random(7)
    trie = store.trie()
    roots = {}
    for block in range(1, BLOCKS + 1):
        with store.view() as view:
            overlay = view.state(block - 1).overlay()
            for position in generator.sample(range(ACCOUNTS), 10):
                overlay.credit(fill.address(position, ACCOUNTS), 1)
            batch = store.batch()
            changes = overlay.take(batch.draw())
        trie.apply(changes)
        roots[block] = trie.root()
        batch.append(block, block.to_bytes(32, "big"), changes, nodes=trie.take())
        store.commit(batch)
    while store.maintain(100_000):
        pass
    with store.view() as view:
        assert view.heads.nodes_earliest > TARGET
    return roots


def _anonymous_megabytes() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1024


class _Peak:
    """The peak of the anonymous memory of this process, sampled by a thread."""

    def __enter__(self) -> Self:
        self.megabytes = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def _sample(self) -> None:
        while not self._ended.wait(0.005):
            self.megabytes = max(self.megabytes, _anonymous_megabytes())

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
