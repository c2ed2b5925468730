"""The last block that two chains share, found by asking about a few heights. No I/O.

Chains that have parted stay apart, so each answer halves what is left to ask about. Who
asks compares the other chain's block of a height with its own.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForkSearch:
    """What is known so far."""

    shared: int  # both chains have the same block here
    apart: int  # and another one here

    @property
    def next(self) -> int | None:
        """The height to ask about; none when `shared` is the last block of both."""
        middle = (self.shared + self.apart) // 2
        return None if middle == self.shared else middle

    def learn(self, number: int, *, is_shared: bool) -> "ForkSearch":
        """What is known after the answer about a height."""
        if is_shared:
            return ForkSearch(number, self.apart)
        return ForkSearch(self.shared, number)
