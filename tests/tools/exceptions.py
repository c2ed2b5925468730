"""What passes on anvil and not here, with the reason: no failure of `make tools`.

A row names a target, a family, a flow and a step; `*` stands for every one. A row that excuses
nothing is reported, so that none outlives its reason.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Exemption:
    """Steps that need not pass on a target, and why."""

    target: str
    family: str
    flow: str
    step: str
    reason: str

    def covers(self, target: str, family: str, flow: str, step: str) -> bool:
        """Whether it is about this step."""
        asked = (target, family, flow, step)
        named = (self.target, self.family, self.flow, self.step)
        return all(mine in ("*", theirs) for mine, theirs in zip(named, asked, strict=True))


EXEMPTIONS: tuple[Exemption, ...] = ()
