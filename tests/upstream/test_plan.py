import pytest

from foreblock.upstream.plan import Follow, Plan, Rest, Standing, Walk, plan
from foreblock.upstream.reader import Head

WANTED = b"w" * 32


def head(number: int) -> Head:
    return Head(number, bytes([number]) * 32)


@pytest.mark.parametrize(
    ("story", "latest", "tip", "knows", "wanted", "behind_for", "expected"),
    [
        ("at the tip", 7, 7, True, None, 99, Rest()),
        ("above it, which the endpoint will reach", 8, 7, True, None, 99, Rest()),
        ("a wanted block comes first", 7, 7, True, WANTED, 0, Walk(WANTED)),
        ("also when a little behind", 7, 9, False, WANTED, 0, Walk(WANTED)),
        ("a little behind: the feed has time", 7, 8, False, None, 0.9, Rest()),
        ("but not for ever", 7, 8, False, None, 1.0, Follow(8, 8)),
        ("far behind: at once", 7, 10, False, None, 0, Follow(8, 10)),
        ("far behind: what is wanted lies beyond", 7, 10, False, WANTED, 0, Follow(8, 10)),
        ("the tip is another block", 7, 7, False, None, 0, Walk(head(7).hash)),
        ("the endpoint went back to another block", 8, 7, False, None, 0, Walk(head(7).hash)),
    ],
)
def test_what_is_fetched(
    story: str, latest: int, tip: int, knows: bool, wanted: bytes | None, behind_for: float,
    expected: Plan,
) -> None:  # fmt: skip
    standing = Standing(head(latest), knows)
    assert plan(standing, head(tip), wanted, behind_for, 1.0) == expected, story
