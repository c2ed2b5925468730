"""The initial role of a node."""

import pytest

from foreblock.log.takeover import Role, first_role, next_epoch


@pytest.mark.parametrize("is_empty", [False, True])
@pytest.mark.parametrize("listens", [False, True])
def test_a_replica_follows_whatever_there_is(*, is_empty: bool, listens: bool) -> None:
    found = first_role(may_write=False, log_is_empty=is_empty, writer_listens=listens)
    assert found is Role.FOLLOW


@pytest.mark.parametrize(
    ("is_empty", "listens", "role"),
    [
        (True, False, Role.LEAD),
        (True, True, Role.LEAD),  # a writer without any commit has no epoch yet
        (False, False, Role.LEAD),
        (False, True, Role.FOLLOW),
    ],
)
def test_a_node_that_may_write_leads_where_nobody_does(
    *, is_empty: bool, listens: bool, role: Role
) -> None:
    assert first_role(may_write=True, log_is_empty=is_empty, writer_listens=listens) is role


def test_epochs_begin_with_one_and_follow_each_other() -> None:
    assert [next_epoch(each) for each in (0, 1, 7)] == [1, 2, 8]
