"""The writes of a snapshot and a revert: the same on a long chain as on a short one."""

from pathlib import Path
from typing import Any

import pytest

from foreblock.bus.commands import Revert, TakeSnapshot
from foreblock.ledger.building.commit_builder import CommitBuilder
from support.chains.dev_chain import ACCOUNTS, DevChain, send

ALICE, BOB = ACCOUNTS[:2]
WRITES = {"put", "delete", "drop", "revive", "extend", "append", "seal", "forget"}


class Counted:
    """A batch that counts its writes and their bytes."""

    def __init__(self, batch: Any) -> None:  # noqa: ANN401, a batch of the engine
        self.batch = batch
        self.calls: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401, of the batch
        found = getattr(self.batch, name)
        if name not in WRITES:
            return found

        def counted(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401, of the batch
            lists = [each for each in arguments if isinstance(each, bytes | list)]
            self.calls.append((name, sum(len(each) for each in lists)))
            return found(*arguments, **named)

        return counted


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The writes of all commits, in order."""
    calls: list[tuple[str, int]] = []
    begin, commit = CommitBuilder.__init__, CommitBuilder.commit

    def counting(self: Any, store: Any) -> None:  # noqa: ANN401, as it is
        begin(self, store)
        self.batch = Counted(self.batch)

    def committing(self: Any, *to: Any) -> Any:  # noqa: ANN401, as it is
        counted = self.batch
        self.batch = counted.batch
        calls.extend(counted.calls)
        return commit(self, *to)

    monkeypatch.setattr(CommitBuilder, "__init__", counting)
    monkeypatch.setattr(CommitBuilder, "commit", committing)
    return calls


def writes_of_a_revert(
    folder: Path, blocks: int, written: list[tuple[str, int]]
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The writes of a snapshot on a chain of this height, and of a revert of three blocks."""
    chain = DevChain(folder, mining="automine")
    for nonce in range(blocks):
        chain.submit(send(ALICE, nonce))
    chain.run_until_idle()
    written.clear()
    snapshot = chain.execute(TakeSnapshot())
    taken = sorted(written)
    chain.submit(*(send(BOB, nonce) for nonce in range(3)))
    chain.run_until_idle()
    written.clear()
    assert chain.execute(Revert(snapshot))
    reverted = sorted(written)
    chain.kill()
    return taken, reverted


def test_neither_depends_on_the_length_of_the_chain(
    tmp_path: Path, written: list[tuple[str, int]]
) -> None:
    short = writes_of_a_revert(tmp_path / "short", 130, written)
    long = writes_of_a_revert(tmp_path / "long", 500, written)
    for one, other, most in zip(short, long, (10, 120), strict=True):
        assert 0 < len(one) <= most
        assert [name for name, _ in one] == [name for name, _ in other]
        assert abs(sum(size for _, size in one) - sum(size for _, size in other)) < 64
