"""Steps that pass on anvil and not here, with the reason: not failures of `make tools`.

A row names a target, a family, a flow and a step; `*` stands for all. An unused row is reported, so
that none outlives its reason.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Exemption:
    """Steps that need not pass on a target, and the reason."""

    target: str
    family: str
    flow: str
    step: str
    reason: str

    def covers(self, target: str, family: str, flow: str, step: str) -> bool:
        """Return whether it applies to this step."""
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

# State edits are visible at `pending` immediately; at `latest` only if no clock seals blocks.
CLOCK = "with a clock, what is set by hand is at `latest` with the next block"
SHOWN = "flashblocks are shown, so what is set by hand comes after transactions that have run"
HASTY = "the matcher asks for the receipt once, without waiting for a block"
DEPOSIT = "blocks of OP chains begin with a deposit, and the matcher wants one transaction"
L1_FEE = "senders on OP chains also pay for L1, which the matcher does not count"
CONFIRMATIONS = "Ignition wants 5 confirmations of other transactions where a clock seals blocks"
NO_FORK = "there is no fork, so another URL for it is refused instead of ignored"

EXEMPTIONS: tuple[Exemption, ...] = (
    Exemption("*", "viem", "test client, anvil", "setRpcUrl", NO_FORK),
    Exemption("eth", "ethers", "everyday", "an impersonated signer", CLOCK),
    Exemption("eth", "hardhat2", "viem", "has a test client", CLOCK),
    Exemption("eth", "hardhat2", "ethers", "emit", HASTY),
    Exemption("eth", "hardhat2", "ethers", "emit withArgs", HASTY),
    Exemption("eth", "hardhat2", "ethers", "impersonated signers", HASTY),
    Exemption("eth", "hardhat2", "ethers", "reverted, in a call and in a transaction", HASTY),
    Exemption("eth", "hardhat2", "ethers", "changeEtherBalance", DEPOSIT),
    Exemption("eth", "hardhat2", "ethers", "changeEtherBalances", L1_FEE),
    Exemption("eth", "hardhat2", "ethers", "changeEtherBalance with fees", DEPOSIT),
    Exemption("eth", "hardhat2", "ethers", "changeTokenBalance", DEPOSIT),
    Exemption("eth", "hardhat2", "network helpers", "setBalance", CLOCK),
    Exemption("eth", "hardhat2", "network helpers", "setCode", CLOCK),
    Exemption("eth", "hardhat2", "network helpers", "setStorageAt and getStorageAt", CLOCK),
    Exemption("eth", "hardhat2", "network helpers", "setNonce", CLOCK),
    Exemption(
        "eth", "hardhat2", "network helpers", "accounts are set while a transaction waits", SHOWN
    ),
    Exemption("eth", "hardhat3", "viem", "a test client", CLOCK),
    Exemption("eth", "hardhat3", "viem", "setBalance, setCode, setNonce, setStorageAt", CLOCK),
    Exemption("eth", "hardhat3", "viem", "a module of Ignition", CONFIRMATIONS),
    Exemption("eth", "hardhat3", "ethers", "changeEtherBalances", DEPOSIT),
    Exemption("eth", "hardhat3", "ethers", "changeTokenBalance", DEPOSIT),
    *OTHERS,
)
