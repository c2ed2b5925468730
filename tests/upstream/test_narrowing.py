"""The next attempt at the same endpoint: narrower every time, so the sequence ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.follow.requests import (
    GetBalance,
    GetCode,
    GetHeader,
    GetProof,
    GetStorageAt,
    GetStorageValues,
    ReadByCall,
    StateRequest,
)
from foreblock.follow.state_plan import NextTry, RequestLimits, degrade
from foreblock.upstream.json_rpc import RefusalKind
from support.each_case import each_case

A = b"\xaa" * 20
CALL, VALUES, PROOF = ReadByCall({A: (1,)}), GetStorageValues({A: (1,)}), GetProof(A, (1,))
LIMITS = RequestLimits()


@each_case(
    ("asked", "kind", "after"),
    [
        (CALL, RefusalKind.NO_METHOD, LIMITS._replace(calls=False)),
        (CALL, RefusalKind.REVERTED, LIMITS._replace(calls=False)),
        (CALL, RefusalKind.WRONG_LENGTH, LIMITS._replace(calls=False)),
        (CALL, RefusalKind.TOO_LARGE, LIMITS._replace(call_slots=2048)),
        (VALUES, RefusalKind.NO_METHOD, LIMITS._replace(values=False)),
        (VALUES, RefusalKind.TOO_LARGE, LIMITS._replace(values_slots=512)),
        (PROOF, RefusalKind.NO_METHOD, LIMITS._replace(proofs=False)),
        (PROOF, RefusalKind.TOO_LARGE, LIMITS._replace(proof_slots=128)),
        (PROOF, RefusalKind.NO_STATE, LIMITS._replace(tip_proofs=True)),
    ],
)
def test_what_is_refused_is_not_asked_for_again(
    asked: StateRequest, kind: RefusalKind, after: RequestLimits
) -> None:
    assert degrade(LIMITS, [(asked, kind.value)] * 3, 0, 1) == NextTry(after, 0)


def test_a_batch_is_made_smaller_first() -> None:
    limits = LIMITS._replace(batch=10)
    assert degrade(limits, [(CALL, RefusalKind.TOO_LARGE.value)], 0, 1) == NextTry(
        limits._replace(batch=5), 0
    )
    assert degrade(limits, [(PROOF, RefusalKind.UNANSWERED.value)], 0, 1) == NextTry(
        limits._replace(batch=5), 0
    )


@pytest.mark.parametrize("kind", [RefusalKind.NO_BLOCK, RefusalKind.WRONG_BLOCK])
def test_a_block_that_is_not_there_is_looked_for_further_back(kind: RefusalKind) -> None:
    assert degrade(LIMITS, [(PROOF, kind.value)], 0, 2) == NextTry(LIMITS, 1)
    assert degrade(LIMITS, [(PROOF, kind.value)], 1, 2) is None


@each_case("kind", ["unreachable", "server failed", "null", "error", "bad hex"])
def test_everything_else_is_for_another_endpoint(kind: str) -> None:
    assert degrade(LIMITS, [(PROOF, kind)], 0, 3) is None


asked = st.sampled_from(
    [CALL, VALUES, PROOF, GetStorageAt(A, 1), GetBalance(A), GetCode(A), GetHeader(1)]
)
refusals = st.lists(
    st.tuples(asked, st.sampled_from([each.value for each in RefusalKind])), max_size=3
)


@given(st.lists(refusals, min_size=100, max_size=100), st.integers(1, 3))
def test_it_ends(rounds: list[list[tuple[StateRequest, str]]], places: int) -> None:
    """For any errors, no attempt is repeated."""
    now, seen = NextTry(LIMITS._replace(batch=100), 0), set()
    for refused in rounds:
        following = degrade(now.limits, refused, now.back, places)
        if following is None:
            continue
        assert following not in seen
        assert following.back < places
        assert following != now
        seen.add(following)
        now = following
    assert len(seen) < 60
