"""The rules of a header and of uncles, given the parent: all that need no execution.

Pure: headers and rules in, nothing or `BadBlock` out. Checks are ordered by the meaning of the
fields (position, fields, gas, fees, blobs); a header that breaks several rules is refused by the
first. Roots, blooms and gas used need the body or an execution and are checked there.

An uncle is a block that lost: a valid header whose parent is an ancestor of ours, at most six
generations back, that is not itself an ancestor and was not named before. The reward for naming
one is in `execution`.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import Header
from foreblock.errors import BadBlock
from foreblock.ledger.rules.check import EMPTY_OMMERS_HASH, Check
from foreblock.ledger.rules.fees import (
    GAS_PER_BLOB,
    INITIAL_BASE_FEE,
    check_extra_data,
    next_base_fee,
    next_excess_blob_gas,
    next_optimism_base_fee,
)
from foreblock.ledger.rules.forks import OSAKA, EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.profile import ChainProfile

MINIMUM_DIFFICULTY: Final = 131_072

# By how many blocks each fork sets the bomb back, newest first.
_BOMB_DELAYS: Final = (
    (EthereumFork.GRAY_GLACIER, 11_400_000),  # EIP-5133
    (EthereumFork.ARROW_GLACIER, 10_700_000),  # EIP-4345
    (EthereumFork.LONDON, 9_700_000),  # EIP-3554
    (EthereumFork.MUIR_GLACIER, 9_000_000),  # EIP-2384
    (EthereumFork.CONSTANTINOPLE, 5_000_000),  # EIP-1234
    (EthereumFork.BYZANTIUM, 3_000_000),  # EIP-649
    (EthereumFork.FRONTIER, 0),
)


def next_difficulty(parent: Header, time: int, fork: EthereumFork) -> int:
    """The difficulty of the child of `parent` at this time under `fork`'s rules."""
    step = parent.difficulty // 2048 * _direction(parent, time, fork)
    difficulty = max(parent.difficulty + step, MINIMUM_DIFFICULTY)
    return difficulty + _bomb(parent.number + 1, fork)


def _direction(parent: Header, time: int, fork: EthereumFork) -> int:
    """Steps up or, negative, down, from the time since the parent."""
    elapsed = time - parent.timestamp
    if fork >= EthereumFork.BYZANTIUM:  # EIP-100
        uncles = 1 if parent.ommers_hash == EMPTY_OMMERS_HASH else 2
        return max(uncles - elapsed // 9, -99)
    if fork >= EthereumFork.HOMESTEAD:  # EIP-2
        return max(1 - elapsed // 10, -99)
    return 1 if elapsed < 13 else -1


def _bomb(number: int, fork: EthereumFork) -> int:
    delay = next(blocks for since, blocks in _BOMB_DELAYS if fork >= since)
    period = max(number - delay, 0) // 100_000
    return 1 << (period - 2) if period > 1 else 0


MAXIMUM_EXTRA_DATA: Final = 32  # bytes, yellow paper
MINIMUM_GAS_LIMIT: Final = 5_000  # yellow paper
MAXIMUM_GAS_LIMIT: Final = 2**63 - 1  # EIP-1985
GAS_LIMIT_BOUND_DIVISOR: Final = 1_024  # yellow paper
LONDON_ELASTICITY: Final = 2  # EIP-1559: the limit doubles so that the target stays


def check_header(
    header: Header,
    parent: Header,
    rules: Rules,
    parent_rules: Rules,
    profile: ChainProfile,
    *,
    chosen: bool = False,
) -> None:
    """Check everything about `header` that follows from its parent and the rules of both.

    The base fee and the gas limit may have been `chosen`, on a chain for development.
    """
    check = Check(header.number)
    _check_position(check, header, parent, profile)
    _check_fields(check, header, rules)
    _check_proposal(check, header, parent, rules)
    _check_extra_data(check, header, rules)
    if not chosen:
        _check_gas_limit(check, header, parent, rules)
        _check_base_fee(check, header, parent, rules, parent_rules, profile)
    _check_blob_gas(check, header, parent, rules, profile)


def _check_position(check: Check, header: Header, parent: Header, profile: ChainProfile) -> None:
    check.equal("number", parent.number + 1, header.number)
    check.equal("parent hash", parent.hash, header.parent_hash)
    if profile.shares_seconds and header.timestamp < parent.timestamp:
        check.fail("time", f"not below the parent's {parent.timestamp}", header.timestamp)
    if not profile.shares_seconds and header.timestamp <= parent.timestamp:
        check.fail("time", f"above the parent's {parent.timestamp}", header.timestamp)


def _check_fields(check: Check, header: Header, rules: Rules) -> None:
    """Each field that a fork added is there from that fork on and not before."""
    fork = rules.ethereum
    london = fork >= EthereumFork.LONDON
    shanghai = fork >= EthereumFork.SHANGHAI
    cancun = fork >= EthereumFork.CANCUN
    prague = fork >= EthereumFork.PRAGUE
    check.present("base fee", header.base_fee_per_gas, expected=london)
    check.present("withdrawals root", header.withdrawals_root, expected=shanghai)
    check.present("blob gas used", header.blob_gas_used, expected=cancun)
    check.present("excess blob gas", header.excess_blob_gas, expected=cancun)
    check.present("parent beacon block root", header.parent_beacon_block_root, expected=cancun)
    check.present("requests hash", header.requests_hash, expected=prague)
    check.present("block access list hash", header.block_access_list_hash, expected=False)
    check.present("slot number", header.slot_number, expected=False)


def _check_proposal(check: Check, header: Header, parent: Header, rules: Rules) -> None:
    """A mined block has the difficulty of its position; later ones have none (EIP-3675)."""
    if not rules.merged:
        expected = next_difficulty(parent, header.timestamp, rules.ethereum)
        check.equal("difficulty", expected, header.difficulty)
        return
    check.equal("difficulty", 0, header.difficulty)
    check.equal("nonce", bytes(8), header.nonce)
    check.equal("ommers hash", EMPTY_OMMERS_HASH, header.ommers_hash)


def _check_extra_data(check: Check, header: Header, rules: Rules) -> None:
    check.at_most("length of extra data", MAXIMUM_EXTRA_DATA, len(header.extra_data))
    if rules.optimism is not None:
        check_extra_data(check, header, rules.optimism)


def _check_gas_limit(check: Check, header: Header, parent: Header, rules: Rules) -> None:
    check.at_most("gas used", header.gas_limit, header.gas_used)
    if rules.optimism is not None:
        return  # an OP chain's limit comes with the block, from its system configuration
    limit = parent.gas_limit
    if _begins_base_fee(header, parent):
        limit *= LONDON_ELASTICITY
    bound = limit // GAS_LIMIT_BOUND_DIVISOR
    lowest = max(limit - bound + 1, MINIMUM_GAS_LIMIT)
    highest = min(limit + bound - 1, MAXIMUM_GAS_LIMIT)
    check.within("gas limit", lowest, header.gas_limit, highest)


def _check_base_fee(
    check: Check,
    header: Header,
    parent: Header,
    rules: Rules,
    parent_rules: Rules,
    profile: ChainProfile,
) -> None:
    if header.base_fee_per_gas is not None:
        expected = base_fee_after(parent, rules, parent_rules, profile)
        check.equal("base fee", expected, header.base_fee_per_gas)


def base_fee_after(parent: Header, rules: Rules, parent_rules: Rules, profile: ChainProfile) -> int:
    """The base fee of the child of `parent`; the child's rules have one."""
    if parent.base_fee_per_gas is None:
        return INITIAL_BASE_FEE
    constants = profile.elasticity(rules)
    if parent_rules.includes(OptimismFork.HOLOCENE):
        return next_optimism_base_fee(parent, parent_rules, constants)
    return next_base_fee(parent.base_fee_per_gas, parent.gas_used, parent.gas_limit, *constants)


def _check_blob_gas(
    check: Check, header: Header, parent: Header, rules: Rules, profile: ChainProfile
) -> None:
    """Blob gas within the schedule (EIP-4844); the transactions show how much is used."""
    if header.blob_gas_used is None:
        return
    check.equal(
        "excess blob gas",
        excess_blob_gas_after(parent, header.timestamp, profile, rules),
        header.excess_blob_gas,
    )
    parameters = profile.blob_parameters(header.timestamp)
    if parameters is not None:
        check.at_most("blob gas used", parameters.maximum * GAS_PER_BLOB, header.blob_gas_used)
    elif not rules.includes(OptimismFork.JOVIAN):
        check.equal("blob gas used", 0, header.blob_gas_used)


def excess_blob_gas_after(parent: Header, time: int, profile: ChainProfile, rules: Rules) -> int:
    """The excess blob gas of the child of `parent` at `time`; 0 on a chain without blobs."""
    parameters = profile.blob_parameters(time)
    if parameters is None:
        return 0
    return next_excess_blob_gas(
        parent.excess_blob_gas or 0,
        parent.blob_gas_used or 0,
        parent.base_fee_per_gas or 0,
        parameters,
        reserve_price=rules.ethereum >= OSAKA,
    )


def _begins_base_fee(header: Header, parent: Header) -> bool:
    return header.base_fee_per_gas is not None and parent.base_fee_per_gas is None


MAXIMUM_UNCLES: Final = 2  # yellow paper
MAXIMUM_DEPTH: Final = 6  # yellow paper: generations between a block and its uncle


class Ancestor(Struct, frozen=True):
    """A block before ours, with the hashes of the uncles it named."""

    header: Header
    uncles: tuple[bytes, ...]


# The parent of the oldest uncle is one generation further back.
ANCESTORS_NEEDED: Final = MAXIMUM_DEPTH + 1


def check_uncles(
    number: int, uncles: Sequence[Header], ancestors: Sequence[Ancestor], profile: ChainProfile
) -> None:
    """Check the uncles of block `number`, whose ancestors are given oldest first."""
    check = Check(number)
    check.at_most("number of uncles", MAXIMUM_UNCLES, len(uncles))
    headers = {ancestor.header.hash: ancestor.header for ancestor in ancestors[-ANCESTORS_NEEDED:]}
    named = {uncle for ancestor in ancestors[-ANCESTORS_NEEDED:] for uncle in ancestor.uncles}
    for index, uncle in enumerate(uncles):
        what = f"uncle {index}"
        check.within(f"number of {what}", max(number - MAXIMUM_DEPTH, 1), uncle.number, number - 1)
        if uncle.hash in headers:
            check.fail(what, "a block that is no ancestor", uncle.hash)
        if uncle.hash in named:
            check.fail(what, "a block not named before", uncle.hash)
        parent = headers.get(uncle.parent_hash)
        if parent is None:
            check.fail(f"parent hash of {what}", "a recent ancestor", uncle.parent_hash)
        _check_uncle_header(check, what, uncle, parent, profile)
        named.add(uncle.hash)


def _check_uncle_header(
    check: Check, what: str, uncle: Header, parent: Header, profile: ChainProfile
) -> None:
    rules = profile.rules(uncle.number, uncle.timestamp, merged=False)
    parent_rules = profile.rules(parent.number, parent.timestamp, merged=False)
    try:
        check_header(uncle, parent, rules, parent_rules, profile)
    except BadBlock as bad:
        check.fail(f"{bad.what} of {what}", bad.expected, bad.found)
