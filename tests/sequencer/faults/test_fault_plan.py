"""The random decisions of fault injection."""

import pytest

from foreblock.errors import InvalidArgument
from foreblock.sequencer.faults.plan import FaultKind, Faults
from support.each_case import each_case

PLACES = [(block, index) for block in range(1, 200) for index in range(11)]


def struck(faults: Faults, kind: FaultKind) -> list[tuple[int, int]]:
    return [place for place in PLACES if faults.happens(kind, *place)]


@each_case("kind", FaultKind)
def test_a_fault_happens_about_as_often_as_it_is_to(kind: FaultKind) -> None:
    for rate in (0.01, 0.2, 0.7):
        found = len(struck(Faults({kind: rate}), kind)) / len(PLACES)
        assert found == pytest.approx(rate, rel=0.5)
    assert struck(Faults({kind: 0}), kind) == []
    assert struck(Faults({kind: 1}), kind) == PLACES


def test_where_it_happens_depends_on_seed_kind_and_place_alone() -> None:
    alone = Faults.parse(["drop=0.1"], seed=7)
    together = Faults.parse(["garbage=0.5", "drop=0.1", "reorg=1"], seed=7)
    assert struck(alone, FaultKind.DROP) == struck(together, FaultKind.DROP)
    assert struck(alone, FaultKind.DROP) != struck(
        Faults.parse(["drop=0.1"], seed=8), FaultKind.DROP
    )
    both = Faults.parse(["drop=0.1", "delay=0.1"])
    assert struck(both, FaultKind.DROP) != struck(both, FaultKind.DELAY)


def test_what_rarely_happens_happens_where_it_often_does() -> None:
    rare = struck(Faults.parse(["stall=0.01"]), FaultKind.STALL)
    assert set(rare) <= set(struck(Faults.parse(["stall=0.1"]), FaultKind.STALL))


def test_no_rate_is_no_fault() -> None:
    assert not Faults({})
    assert not Faults.parse(["drop=0"])
    assert Faults.parse(["drop=1e-9"])


@each_case(
    ("word", "why"),
    [
        ("drop", "is not a fault and its rate"),
        ("rain=0.1", "there are drop, duplicate, delay"),
        ("drop=often", "is not a fault and its rate"),
        ("drop=1.1", "a rate is 0 to 1"),
        ("drop=-1", "a rate is 0 to 1"),
        ("drop=nan", "a rate is 0 to 1"),
    ],
)
def test_bad_words_are_refused(word: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        Faults.parse([word])
