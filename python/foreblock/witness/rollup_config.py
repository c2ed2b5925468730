"""The configuration of a rollup as OP nodes write it, read into a profile. No I/O.

`rollup.json` of op-node, kona's fixtures and the answer of `optimism_rollupConfig` have this
form. Forks begin at `NAME_time`. One that foreblock does not execute is refused only if it has
begun at the time of the block; keys that say how blocks are derived from L1 have no effect.
"""

from typing import Final

from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork
from foreblock.ledger.rules.profile import ChainProfile, OptimismParameters
from foreblock.primitives import ZERO_ADDRESS

_SUFFIX: Final = "_time"
# Times that are no forks, or forks that change how blocks are derived and not what they do.
_WITHOUT_EFFECT: Final = {"block", "delta", "pectra_blob_schedule", "l2"}
_FORKS: Final = {fork.name.lower(): fork for fork in OptimismFork if fork > OptimismFork.BEDROCK}
# The constants of OP Mainnet, which a configuration that leaves them out means.
_ELASTICITY: Final = 6
_DENOMINATOR: Final = 50
_DENOMINATOR_CANYON: Final = 250


def read_rollup_config(config: JsonValue, time: int) -> ChainProfile:
    """The profile for a block of this time; refuses a configuration that cannot be meant."""
    fees = config.get("chain_op_config")

    def constant(key: str, default: int) -> int:
        stated = None if fees is None else fees.get(key)
        number = default if stated is None else stated.number(32)
        if not number and stated is not None:
            stated.refuse("must not be zero")
        return number

    return ChainProfile(
        chain_id=config.need("l2_chain_id").number(),
        forks_by_block=((0, EthereumFork.GRAY_GLACIER),),
        forks_by_time=((0, EthereumFork.PARIS),),
        blob_schedule=(),
        terminal_total_difficulty=0,
        deposit_contract=ZERO_ADDRESS,
        optimism=OptimismParameters(
            forks=((0, OptimismFork.BEDROCK), *_forks(config, time)),
            elasticity=constant("eip1559Elasticity", _ELASTICITY),
            denominator=constant("eip1559Denominator", _DENOMINATOR),
            denominator_canyon=constant("eip1559DenominatorCanyon", _DENOMINATOR_CANYON),
            block_time=config.need("block_time").number(),
        ),
    )


def _forks(config: JsonValue, time: int) -> list[tuple[int, OptimismFork]]:
    """The forks that are stated, in order; Regolith has been there from the first block on."""
    found = {OptimismFork.REGOLITH: 0}
    for key, member in config.items():
        name = key.removesuffix(_SUFFIX)
        if name == key or name in _WITHOUT_EFFECT or member.value is None:
            continue
        begins = member.number()
        if name in _FORKS:
            found[_FORKS[name]] = begins
        elif begins <= time:
            member.refuse("a fork that foreblock cannot execute, begun before this block")
    schedule = sorted((fork, begins) for fork, begins in found.items())
    last = 0
    for fork, begins in schedule:
        if begins < last:
            config.need(f"{fork.name.lower()}{_SUFFIX}").refuse("begins before the fork before it")
        last = begins
    return [(begins, fork) for fork, begins in schedule]
