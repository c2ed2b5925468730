"""Places and bytes are counted until they are released."""

from foreblock.scheduling.admission import LongText, WorkerBudget
from foreblock.scheduling.thresholds import THRESHOLDS

PORTION = THRESHOLDS.piece_bytes


def test_places_come_back_with_whoever_had_them() -> None:
    budget = WorkerBudget(waits=2)
    taken = [budget.waits.lease(), budget.waits.lease()]
    assert None not in taken
    assert budget.waits.lease() is None
    taken.pop()
    assert budget.waits.lease() is not None


def test_a_text_counts_until_nobody_has_it() -> None:
    budget = WorkerBudget(limit=100)
    text = LongText(budget, [b"a" * 60, b"b" * 20])
    assert (text.size, budget.held) == (80, 80)
    text.add([b"c" * 20])
    assert (text.size, budget.held) == (100, 100)
    del text
    assert budget.held == 0


def test_what_is_taken_counts_until_it_is_sent() -> None:
    budget = WorkerBudget(limit=10 * PORTION)
    text = LongText(budget, [b"a" * (PORTION - 1), b"b", b"}", b"c" * 5000])
    assert [len(piece) for piece in text.next_pieces()] == [PORTION - 1, 1, 1], (
        "small ones go along"
    )
    assert (text.size, budget.held) == (5000, PORTION + 5001)
    text.sent()
    assert budget.held == 5000
    assert text.next_pieces() == [b"c" * 5000]
    assert text.next_pieces() == []
    assert budget.held == 5000
    del text
    assert budget.held == 0


def test_a_piece_that_texts_share_counts_once() -> None:
    budget = WorkerBudget(limit=100)
    shared, other = b"s" * 80, b"o" * 30
    first = LongText(budget, [shared])
    assert budget.has_for([shared, b"x" * 20])
    assert not budget.has_for([other])
    second = LongText(budget, [shared, shared])
    assert budget.held == 80
    del first
    assert budget.held == 80
    del second
    assert budget.held == 0
    assert budget.has_for([other])


def test_a_refusal_is_noted() -> None:
    budget = WorkerBudget(limit=100)
    assert budget.has_for([b"x" * 100])
    assert not budget.wanted
    assert not budget.has_for([b"x" * 101])
    assert budget.wanted
