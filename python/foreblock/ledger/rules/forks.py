"""The two ladders of forks, and the rules in force for one block.

A fork's rules include those of every fork before it, so a rule compares with `>=`. A block of
an OP chain has a place on both ladders: its own fork, and the Ethereum fork whose rules that
one contains. `profile` decides the forks of a block.
"""

from enum import IntEnum, auto
from typing import Final

from msgspec import Struct

ETHER: Final = 10**18
MAX_TRANSACTION_GAS: Final = 2**24  # EIP-7825


class EthereumFork(IntEnum):
    """Ethereum's forks in order, those included that only delay the difficulty bomb."""

    FRONTIER = auto()
    HOMESTEAD = auto()
    TANGERINE = auto()
    SPURIOUS_DRAGON = auto()
    BYZANTIUM = auto()
    CONSTANTINOPLE = auto()
    PETERSBURG = auto()
    ISTANBUL = auto()
    MUIR_GLACIER = auto()
    BERLIN = auto()
    LONDON = auto()
    ARROW_GLACIER = auto()
    GRAY_GLACIER = auto()
    PARIS = auto()
    SHANGHAI = auto()
    CANCUN = auto()
    PRAGUE = auto()
    OSAKA = auto()


class OptimismFork(IntEnum):
    """The forks of the OP stack that change validity or execution of blocks."""

    BEDROCK = auto()
    REGOLITH = auto()
    CANYON = auto()
    ECOTONE = auto()
    FJORD = auto()
    GRANITE = auto()
    HOLOCENE = auto()
    ISTHMUS = auto()
    JOVIAN = auto()
    KARST = auto()
    LAGOON = auto()


# Each fork under a name of its own, for rules of every block: CPython 3.11 takes six times as
# long to look up a member of an enum as a name of a module.
(
    FRONTIER,
    HOMESTEAD,
    TANGERINE,
    SPURIOUS_DRAGON,
    BYZANTIUM,
    CONSTANTINOPLE,
    PETERSBURG,
    ISTANBUL,
    MUIR_GLACIER,
    BERLIN,
    LONDON,
    ARROW_GLACIER,
    GRAY_GLACIER,
    PARIS,
    SHANGHAI,
    CANCUN,
    PRAGUE,
    OSAKA,
) = EthereumFork
(
    BEDROCK,
    REGOLITH,
    CANYON,
    ECOTONE,
    FJORD,
    GRANITE,
    HOLOCENE,
    ISTHMUS,
    JOVIAN,
    KARST,
    LAGOON,
) = OptimismFork

# The Ethereum fork whose rules each OP fork contains, as far as they execute; the engine has the
# same table. Deposits are exempt from the gas cap of Osaka, and blocks from its limit of bytes.
ETHEREUM_RULES_OF: Final = {
    OptimismFork.BEDROCK: EthereumFork.PARIS,
    OptimismFork.REGOLITH: EthereumFork.PARIS,
    OptimismFork.CANYON: EthereumFork.SHANGHAI,
    OptimismFork.ECOTONE: EthereumFork.CANCUN,
    OptimismFork.FJORD: EthereumFork.CANCUN,
    OptimismFork.GRANITE: EthereumFork.CANCUN,
    OptimismFork.HOLOCENE: EthereumFork.CANCUN,
    OptimismFork.ISTHMUS: EthereumFork.PRAGUE,
    OptimismFork.JOVIAN: EthereumFork.PRAGUE,
    OptimismFork.KARST: EthereumFork.OSAKA,
    OptimismFork.LAGOON: EthereumFork.OSAKA,
}

# A bomb delay changes the difficulty and nothing that executes.
_EXECUTES_AS: Final = {
    EthereumFork.MUIR_GLACIER: EthereumFork.ISTANBUL,
    EthereumFork.ARROW_GLACIER: EthereumFork.LONDON,
    EthereumFork.GRAY_GLACIER: EthereumFork.LONDON,
}


def _camel(fork: EthereumFork | OptimismFork) -> str:
    return fork.name.title().replace("_", "")


# The names of forks in the engine, by their place in the ladder.
_ETHEREUM_NAMES: Final = (
    "",
    *(f"ethereum:{_camel(_EXECUTES_AS.get(fork, fork))}" for fork in EthereumFork),
)
# Lagoon changes how a block is settled, which `post_exec` and the engine's refunds do.
_OPTIMISM_NAMES: Final = (
    "",
    *(f"optimism:{_camel(min(fork, OptimismFork.KARST))}" for fork in OptimismFork),
)


class Rules(Struct, frozen=True, gc=False):
    """The forks in force for one block. A Struct, because every simulated block makes one."""

    ethereum: EthereumFork
    optimism: OptimismFork | None = None

    @property
    def engine_name(self) -> str:
        """The name of these rules in the engine."""
        if self.optimism is not None:
            return _OPTIMISM_NAMES[self.optimism]
        return _ETHEREUM_NAMES[self.ethereum]

    @property
    def merged(self) -> bool:
        """True if a block is proposed by the consensus layer rather than mined."""
        return self.ethereum >= PARIS

    @property
    def transaction_gas_cap(self) -> int | None:
        """The most gas that a transaction may have, deposits apart; none before Osaka."""
        return MAX_TRANSACTION_GAS if self.ethereum >= OSAKA else None

    @property
    def block_size_limited(self) -> bool:
        """True if a block's encoding has a limit (EIP-7934): Osaka's, which Karst leaves out."""
        return self.ethereum >= OSAKA and self.optimism is None

    @property
    def block_reward(self) -> int:
        """The reward of mining the block, in wei (EIP-649, EIP-1234; 0 after the merge)."""
        if self.merged:
            return 0
        if self.ethereum >= EthereumFork.CONSTANTINOPLE:
            return 2 * ETHER
        if self.ethereum >= EthereumFork.BYZANTIUM:
            return 3 * ETHER
        return 5 * ETHER

    def includes(self, fork: OptimismFork) -> bool:
        """True if this is an OP block under `fork`'s rules or later ones."""
        return self.optimism is not None and self.optimism >= fork
