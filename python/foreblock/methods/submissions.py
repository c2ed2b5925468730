"""Where transactions go, as methods see it: to a sequencer somewhere, or nowhere."""

from typing import Protocol

from foreblock.errors import SequencerUnavailable


class Submissions(Protocol):
    """The way to one network's sequencer."""

    async def submit(self, raw: bytes, sender: bytes) -> None:
        """Return when the pool has the transaction.

        Raises `RejectedTransaction` with the pool's reason; `SequencerUnavailable` and
        `SequencerBusy` where it is certain that the pool will not have it; and
        `OutcomeUnknown` where it is not.
        """

    def next_nonce(self, sender: bytes) -> int:
        """The nonce after the sender's transactions in the pool; 0 where nothing is known."""


class NoSequencer:
    """The way of a network that only reads, such as an imported chain."""

    async def submit(self, raw: bytes, sender: bytes) -> None:  # noqa: ARG002, as in the protocol
        """Refuse."""
        raise SequencerUnavailable

    def next_nonce(self, sender: bytes) -> int:  # noqa: ARG002, as in the protocol
        """Nothing waits anywhere."""
        return 0
