"""Every command has a function; those of at most a millisecond run on the loop of the writer."""

from pathlib import Path

import pytest

from foreblock.bus.commands import (
    AnyCommand,
    Command,
    IncreaseTime,
    LoadState,
    Mine,
    Reset,
    Revert,
    Rollback,
    SetAccount,
    TakeSnapshot,
)
from foreblock.sequencer import block_changes
from foreblock.sequencer.commands import is_short
from foreblock.sequencer.commands.execution import FUNCTIONS, SHORT_BLOCKS
from support.chains.dev_chain import ACCOUNTS, NOBODY, DevChain, send

SHORT: list[AnyCommand] = [
    Mine(),
    Mine(4),
    IncreaseTime(5),
    TakeSnapshot(),
    Revert(0),
    Rollback(1),
    SetAccount(NOBODY, balance=b"\1"),
    SetAccount(NOBODY, code=bytes(24_576)),
]
LONG: list[AnyCommand] = [
    Mine(5),
    Rollback(5),
    Reset(),
    LoadState("file"),
    SetAccount(NOBODY, code=bytes(1_000_000)),
    SetAccount(NOBODY, storage={number.to_bytes(32): b"\1" for number in range(1_000)}),
]


@pytest.mark.parametrize("command", SHORT)
def test_few_blocks_and_small_changes_are_short_while_nothing_waits(
    tmp_path: Path, command: AnyCommand
) -> None:
    chain = DevChain(tmp_path / "store", mining="manual")
    assert is_short(chain.sequencer, command)
    chain.submit(send(ACCOUNTS[0], 0))
    assert not is_short(chain.sequencer, command), "it would have to run, or to be put back"
    chain.run(500)
    assert not is_short(chain.sequencer, command), "it would run again"


@pytest.mark.parametrize("command", LONG)
def test_many_blocks_and_large_changes_are_long(tmp_path: Path, command: AnyCommand) -> None:
    assert not is_short(DevChain(tmp_path / "store", mining="manual").sequencer, command)


def test_it_depends_on_how_much_a_revert_gives_up(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="automine")
    snapshot = chain.execute(TakeSnapshot())
    chain.execute(Mine(SHORT_BLOCKS))
    assert is_short(chain.sequencer, Revert(snapshot))
    chain.execute(Mine())
    assert not is_short(chain.sequencer, Revert(snapshot))


def test_a_state_edit_before_which_others_are_put_together_is_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_changes, "MOST_EDITED", 6)
    chain = DevChain(tmp_path / "store", mining="automine")
    found = []
    for number in range(1, 8):
        command = SetAccount(NOBODY, balance=bytes([number]))
        found.append(is_short(chain.sequencer, command))
        chain.execute(command)
    assert found == [True] * 5 + [False, True]


def test_every_command_has_a_function() -> None:
    assert set(FUNCTIONS) == set(Command.__subclasses__())
