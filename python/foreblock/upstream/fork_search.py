"""The last block that two chains share, found by asking about a few heights. No I/O.

Chains that have parted stay apart. So the search goes down from the top in steps that
double, until it comes to a block of both, and then halves what lies between. It asks for
no block that is much older than the fork. Who asks compares the other chain's block of a
height with its own.
"""

from dataclasses import dataclass, replace

FIRST_STEP = 128


@dataclass(frozen=True, slots=True)
class ForkSearch:
    """What is known so far."""

    earliest: int  # nothing below is of interest
    apart: int  # the chains differ here, and above
    shared: int | None = None  # both have the same block here
    step: int = FIRST_STEP

    @property
    def next(self) -> int | None:
        """The height to ask about; none at the end.

        Then `shared` is the last block of both, or there is none from `earliest` on.
        """
        if self.shared is None:
            is_over = self.apart <= self.earliest
            return None if is_over else max(self.earliest, self.apart - self.step)
        middle = (self.shared + self.apart) // 2
        return None if middle == self.shared else middle

    def learn(self, number: int, *, is_shared: bool) -> "ForkSearch":
        """What is known after the answer about a height."""
        if is_shared:
            return replace(self, shared=number)
        return replace(self, apart=number, step=self.step * 2)
