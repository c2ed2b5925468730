"""The rules of a chain from its file. No I/O.

The same profile as of a genesis file with these fork times; the state of the genesis is not
needed, because following begins at a block that an endpoint proves.
"""

from foreblock.chains.chain_file import ChainFacts
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork
from foreblock.ledger.rules.profile import ChainProfile, OptimismParameters
from foreblock.primitives import ZERO_ADDRESS


def profile_of(chain: ChainFacts) -> ChainProfile:
    """The rule set, the fork schedule and the constants of this chain."""
    forks = ((time, OptimismFork[name.upper()]) for name, time in chain.forks.begun())
    return ChainProfile(
        chain_id=chain.chain_id,
        forks_by_block=((0, EthereumFork.GRAY_GLACIER),),
        forks_by_time=((0, EthereumFork.PARIS),),
        blob_schedule=(),
        terminal_total_difficulty=0,
        deposit_contract=ZERO_ADDRESS,
        optimism=OptimismParameters(
            forks=((0, OptimismFork.BEDROCK), *forks),
            elasticity=chain.fees.elasticity,
            denominator=chain.fees.denominator,
            denominator_canyon=chain.fees.denominator_canyon,
            block_time=chain.block_time,
        ),
    )
