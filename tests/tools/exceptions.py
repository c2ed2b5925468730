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


# Families in Python, and Foundry.
NOT_ANVIL = "ape-foundry drives what calls itself anvil; ape's own provider has no cheats"
NO_DEPOSITS = "it does not know deposits, which begin blocks of OP chains and are impersonated"

OTHERS: tuple[Exemption, ...] = (
    *(
        Exemption("eth", "ape", "test", f"test_{step}", NOT_ANVIL)
        for step in (
            "balance", "impersonation", "isolation", "mining_by_hand", "snapshot",
            "storage_and_code", "time", "trace",
        )
    ),
    Exemption("eth", "cast", "dev methods", "impersonateAccount", NO_DEPOSITS),
    Exemption("eth", "wake", "test", "test_call_traces", NO_DEPOSITS),
    Exemption("eth", "wake", "test", "test_transact_and_events", NO_DEPOSITS),
)  # fmt: skip

EXEMPTIONS: tuple[Exemption, ...] = (*OTHERS,)
