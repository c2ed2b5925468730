"""Plans for messages: from a classification to the one action that it calls for. No I/O.

A message that has just been received and one that was buffered are planned alike, except that a
buffered one is only taken out if something has changed for it. `actions` carries plans out.
"""

from enum import Enum, auto

from msgspec import Struct

from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.classification import (
    Competing,
    DroppedJob,
    Duplicate,
    Equivocation,
    FirstOnPending,
    FirstOnSealed,
    FirstOnUnknown,
    FirstUnproven,
    JobStatus,
    Next,
    Old,
    Outcome,
    Restart,
    TooFar,
)
from foreblock.ledger.following.jobs import Job

Beginning = FirstOnSealed | FirstOnPending | FirstUnproven | Restart


class Drop(Struct, frozen=True):
    """Ignore it."""


class Extend(Struct, frozen=True):
    """Execute it on the job that it follows."""


class Begin(Struct, frozen=True):
    """Execute it as the first of its block, on the parent that the outcome names."""

    outcome: Beginning


class FindParent(Struct, frozen=True):
    """Compute roots that may name its parent, and classify it again; otherwise buffer it."""


class Compete(Struct, frozen=True):
    """Execute it beside a sealed block, without serving it."""


class Buffer(Struct, frozen=True):
    """Keep it for later; with `revisits`, messages of its height are tried again."""

    revisits: bool = False


Plan = Drop | Extend | Begin | FindParent | Compete | Buffer


def plan(outcome: Outcome, *, copy_waits: bool) -> Plan:  # noqa: PLR0911, a table
    """Plan a message that is not buffered; `copy_waits` if a copy of it waits for state."""
    match outcome:
        case Duplicate() | Old() | TooFar():
            return Drop()
        case _ if copy_waits:
            return Buffer()
        case Next():
            return Extend()
        case FirstOnSealed() | FirstOnPending() | FirstUnproven() | Restart(takes_over=True):
            return Begin(outcome)
        case FirstOnUnknown() | Restart():
            return FindParent()
        case Competing():
            return Compete()
        case Equivocation() | DroppedJob():
            return Buffer(revisits=True)
        case _:
            return Buffer()


class BufferedTurn(Enum):
    """The turn of a buffered message."""

    STAY = auto()  # nothing has changed for it
    ACT = auto()  # take it out, and plan it
    FORGET = auto()  # a copy was executed meanwhile


def turn_of(outcome: Outcome, *, parent_changed: bool) -> BufferedTurn:
    """Return whether to act on a buffered message; `parent_changed` if the height below did."""
    match outcome:
        case Next() | FirstOnSealed() | FirstOnPending() | Restart(takes_over=True):
            return BufferedTurn.ACT
        case FirstOnUnknown() | Restart() | FirstUnproven():
            return BufferedTurn.ACT if parent_changed else BufferedTurn.STAY
        case Duplicate():
            return BufferedTurn.FORGET
        case _:
            return BufferedTurn.STAY


def turn_at_frozen(job: Job, received: Received) -> BufferedTurn:
    """Return whether to act on a buffered message of a job that is frozen: it must fit exactly."""
    fits = received.message.index == len(job.steps)
    return (
        BufferedTurn.ACT if fits and not job.refuses(job.received, received) else BufferedTurn.STAY
    )


def is_frozen(job: Job | None) -> bool:
    """Return whether a job waits for messages that fit exactly."""
    return job is not None and job.status is JobStatus.FROZEN
