"""The screen in terminals of all sizes."""

import io

import pytest
from rich.console import Console

from foreblock.cli.instance import Reading, SeenBlock
from foreblock.cli.watch.history import History
from foreblock.cli.watch.screen import NamedHistory, amount, screen
from foreblock.status.network_status import (
    FeedStatus,
    LogStatus,
    MessageStatus,
    NetworkStatus,
    SourceStatus,
)
from support.each_case import each_case


def history() -> History:
    found = History()
    for number in range(100, 140):
        for index, count in enumerate((1, 40, 90)):
            latest = SeenBlock(number, "0x", 0, 120, 3_370_000, 400_000_000, 10**9)
            pending = SeenBlock(number + 1, "0x", 0, count, count * 30_000, 400_000_000, 10**9)
            found.add(Reading(latest, pending, index, 1), number + index / 5)
    return found


def drawn(width: int, height: int, *shown: NamedHistory, now: float = 139.5) -> list[str]:
    console = Console(width=width, height=height, record=True, file=io.StringIO())
    console.print(screen(shown, now, width, height, paused=False), height=height)
    return console.export_text().splitlines()


@each_case("width", [20, 40, 80, 109, 110, 160, 250])
@each_case("height", [6, 12, 24, 50])
def test_it_fits_into_every_window(width: int, height: int) -> None:
    gone = History(failure="no response from http://127.0.0.1:9545: " + "refused " * 40)
    lines = drawn(width, height, NamedHistory("127.0.0.1:8545", history()), NamedHistory("b", gone))
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert "q quit" in lines[-1]


def test_numbers_bars_and_blocks_are_there() -> None:
    text = "\n".join(drawn(100, 24, NamedHistory("127.0.0.1:8545", history())))
    for part in ("latest 139", "pending 140.2", "age 0.1 s", "1 gwei", "3.37 M", "live", "█"):
        assert part in text, part
    assert "▁▇█▅ ▁▇█" in text


def test_two_networks_stand_side_by_side_where_there_is_room() -> None:
    both = NamedHistory("one", history()), NamedHistory("two", history())
    (line,) = [each for each in drawn(140, 24, *both) if "one" in each]
    assert "two" in line
    lines = drawn(80, 24, *both)
    assert not any("one" in each and "two" in each for each in lines)


def test_many_nodes_stand_in_rows() -> None:
    names = ("front", "writer", "standby", "first", "second")
    lines = drawn(120, 40, *(NamedHistory(name, history()) for name in names))
    found = [[name for name in names if name in line] for line in lines]
    assert [each for each in found if each] == [
        ["front", "writer"],
        ["standby", "first"],
        ["second"],
    ]
    assert len(lines) <= 40


def test_the_state_of_a_log_is_shown() -> None:
    found = history()
    log = LogStatus(is_open=True, connected=True, epoch=3, sequence=8812, commit=9120, silence=0.1)
    found.status = NetworkStatus("main", "log", ready=True, source=SourceStatus(log=log))
    assert "log: epoch 3, sequence 8812" in "\n".join(drawn(100, 24, NamedHistory("one", found)))


def test_alerts_and_facts_are_shown_before_old_blocks() -> None:
    found = history()
    source = SourceStatus(
        feeds=(FeedStatus("ws://a/ws", True, 1, 1, 0, 0, 0.1),),
        messages=MessageStatus({}, missing="0x01"),
    )
    found.status = NetworkStatus("main", "feed", ready=True, source=source)
    text = "\n".join(drawn(80, 16, NamedHistory("one", found), now=160.0))
    assert "! nothing has changed for 21 s" in text
    assert "! missing: block 0x01" in text
    assert "feed: ws://a/ws: connected" in text
    assert "attention" in text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (999, "999"), (1234, "1.23 k"), (3_370_000, "3.37 M")]
)
def test_amounts_have_three_digits(value: int, text: str) -> None:
    assert amount(value) == text
