import re
from pathlib import Path

import pytest

from foreblock.errors import InvalidArgument
from foreblock.sequencer.sequencer_options import SequencerOptions
from foreblock.sequencer.timing import BlockPace
from support.each_case import each_case


def test_the_pace_is_that_of_the_options() -> None:
    assert SequencerOptions().pace == BlockPace(2_000_000_000, 200_000_000, 75_000_000)


@each_case(
    ("changes", "text"),
    [
        ({"block_time": 0}, "the block time is 0; it may be 1 to 3600"),
        ({"interval_ms": 9}, "the interval ms is 9; it may be 10 to 2000"),
        ({"interval_ms": 2_001}, "the interval ms is 2001; it may be 10 to 2000"),
        ({"leeway_ms": 2_000}, "the leeway ms is 2000; it may be 0 to 1999"),
        ({"seed": -1}, "the seed is -1; it may be 0 to 18446744073709551615"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(changes: dict[str, int], text: str) -> None:
    with pytest.raises(InvalidArgument, match="^" + re.escape(text) + "$"):
        SequencerOptions(**changes)  # type: ignore[arg-type]


def test_docs_show_the_leeway(checkout: Path) -> None:
    text = (checkout / "docs" / "dev-chain.md").read_text("utf-8")
    assert f"{SequencerOptions().leeway_ms} ms before the seal" in text
