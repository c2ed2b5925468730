"""The row that says how what is known of a partial base was learned: the weakest way of its epoch.

    rows             key                    value
    trust            V                      proven, audited or trusted

The writer puts it before it learns anything. An audit that has proven all that was believed puts
`proven` in the place of `audited` when it ends; where it was killed before that, some of the base
may be false, and the store has to begin anew to be believed.
"""

from typing import Final, Literal, get_args

from foreblock._engine import Store, View
from foreblock.errors import StoreDamaged

Trust = Literal["proven", "audited", "trusted"]

TRUST: Final = b"V"
_LEVELS: Final[tuple[Trust, ...]] = get_args(Trust)


def put_trust(store: Store, trust: Trust) -> None:
    """Note how the base is learned from now on."""
    store.put_rows([(TRUST, trust.encode())], [])


def read_trust(view: View) -> Trust:
    """How the base of a store was learned; proven where nothing was noted.

    Raises `StoreDamaged`.
    """
    row = view.row(TRUST)
    if row is None:
        return "proven"
    for level in _LEVELS:
        if row == level.encode():
            return level
    raise StoreDamaged(f"the row of the trust: {row!r}")


def may_go_on(stored: Trust, asked: Trust) -> bool:
    """Whether a base that was learned so is good enough for what is asked now."""
    return asked == "trusted" or stored == "proven"
