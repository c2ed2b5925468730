"""The beginning of a dev chain's block: its base, its payload id and its first transaction.

On a real chain all of it comes from L1 through the consensus client. Here it follows from
the parent, the time and the settings, so that equal chains continue equally. The L1 that an OP
chain pretends to stand on has a new block for every six of the L2, and its prices do not
move. A block under Ethereum's own rules begins with no transaction.
"""

import struct
from typing import Final

from msgspec import Struct

from foreblock.ledger.rules.execution import BLOBS_PER_TRANSACTION
from foreblock.ledger.rules.fees import (
    FeeParameters,
    blob_base_fee,
    decode_extra_data,
    encode_extra_data,
)
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.header_rules import base_fee_after
from foreblock.ledger.rules.l1 import (
    ATTRIBUTES_DEPOSITOR,
    BEDROCK,
    L1_BLOCK,
    EcotoneAttributes,
    L1Fees,
    decode_attributes,
)
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage.dev_rows import DevState
from foreblock.primitives import ZERO_ADDRESS
from foreblock.sequencer.admission import (
    BEDROCK_OVERHEAD,
    BEDROCK_SCALAR,
    L1_FEES,
    BlobTerms,
    Terms,
)
from foreblock.sequencer.predeploys import BASE_TIME, SEQUENCER_FEE_VAULT
from foreblock.types import Base, Header, Transaction, deposit_transaction, keccak256

ATTRIBUTES_GAS: Final = 1_000_000  # OP, from Regolith on
# op-geth: gas of a block that a pool reserves for the attributes deposit.
ATTRIBUTES_GAS_USED: Final = 70_000
BASE_TIME_GAS_USED: Final = 60_000  # at most, of the deposit that sets the milliseconds
STRAY_GAS: Final = 100_000  # more than nothing needs
ATTRIBUTES_DOMAIN: Final = 1  # OP: of source hashes
BASE_TIME_DOMAIN: Final = 3  # Base: the same
SET_MILLISECONDS: Final = bytes.fromhex("86bdf394")  # setTimestampMillisPart(uint16)
# OP: the name of the attributes call from each of these forks on.
SELECTORS: Final = (
    (OptimismFork.JOVIAN, bytes.fromhex("3db6be2b")),  # setL1BlockValuesJovian()
    (OptimismFork.ISTHMUS, bytes.fromhex("098999be")),  # setL1BlockValuesIsthmus()
    (OptimismFork.ECOTONE, bytes.fromhex("440a5e20")),  # setL1BlockValuesEcotone()
)
PAYLOAD_VERSION: Final = 3  # the first byte of payload ids, as public sequencers have it

BLOCKS_PER_ORIGIN: Final = 6  # 12 s of L1 over 2 s of L2
L1_BLOCK_TIME: Final = 12  # seconds, over blocks of parts of a second
FIRST_NUMBER: Final = 1  # the origin of the L2's genesis

_NUMBERS: Final = struct.Struct(">IIQQQ")
_OPERATOR: Final = struct.Struct(">IQ")


class L1Origin(Struct, frozen=True):
    """The L1 block that an L2 block refers to."""

    number: int
    hash: bytes
    timestamp: int
    sequence_number: int  # of the L2 block among those with this origin


def next_base(
    parent: Header,
    timestamp: int,
    profile: ChainProfile,
    seed: int,
    state: DevState,
    instead_of: bytes = b"",
) -> Base:
    """The base of the block after `parent`; another one for each block that it replaces."""
    number = parent.number + 1
    chance = parent.hash + instead_of
    rules = profile.rules(number, timestamp, merged=True)
    parent_rules = profile.rules(parent.number, parent.timestamp, merged=True)
    is_optimism = rules.optimism is not None
    return Base(
        parent_hash=parent.hash,
        parent_beacon_block_root=derive(seed, "beacon root", number, chance),
        prev_randao=derive(seed, "randao", number, chance),
        fee_recipient=SEQUENCER_FEE_VAULT if is_optimism else ZERO_ADDRESS,
        block_number=number,
        gas_limit=parent.gas_limit if state.gas_limit is None else state.gas_limit,
        timestamp=timestamp,
        extra_data=_extra_data(parent, (rules, parent_rules), profile, state.minimum_base_fee),
        base_fee_per_gas=base_fee_after(parent, rules, parent_rules, profile),
    )


def payload_id(base: Base, seed: int, attempt: int = 0) -> bytes:
    """The id of the job that builds this block; of another one for each attempt."""
    digest = derive(seed, "payload", base.block_number, base.parent_hash)
    if attempt:
        digest = derive(seed, "another payload", attempt, digest)
    return bytes([PAYLOAD_VERSION]) + digest[:7]


def first_transactions(
    base: Base,
    rules: Rules,
    seed: int,
    block_time: float,
    milliseconds: int | None = None,
    fork_attributes: bytes = b"",
) -> list[Transaction]:
    """The transactions that a block with these rules begins with.

    `milliseconds` are those of its time, on a chain whose blocks state them. A fork keeps the
    attributes of the block that it began on.
    """
    if rules.optimism is None:
        return []
    if fork_attributes:
        source = derive(seed, "fork", base.block_number, base.parent_hash)
        attributes = _deposit_of(source, fork_attributes)
    else:
        attributes = attributes_deposit(base, seed, block_time, rules.optimism)
    if milliseconds is None:
        return [attributes]
    return [attributes, base_time_deposit(base.block_number, milliseconds)]


def base_time_deposit(block: int, milliseconds: int) -> Transaction:
    """The second transaction of a block of Base, which sets the milliseconds of its time."""
    place = keccak256(block.to_bytes(32))
    return deposit_transaction(
        source_hash=keccak256(BASE_TIME_DOMAIN.to_bytes(32) + place),
        sender=ATTRIBUTES_DEPOSITOR,
        to=BASE_TIME,
        mint=0,
        value=0,
        gas_limit=ATTRIBUTES_GAS,
        input=SET_MILLISECONDS + milliseconds.to_bytes(32),
    )


def attributes_deposit(
    base: Base, seed: int, block_time: float, fork: OptimismFork = OptimismFork.JOVIAN
) -> Transaction:
    """The first transaction of an OP block, which brings the attributes of L1."""
    origin = l1_origin(seed, base.block_number, base.timestamp, block_time)
    place = origin.hash + origin.sequence_number.to_bytes(32)
    return _deposit_of(place, attributes_data(origin, L1_FEES, _batcher(seed), fork))


def _deposit_of(place: bytes, attributes: bytes) -> Transaction:
    return deposit_transaction(
        source_hash=keccak256(ATTRIBUTES_DOMAIN.to_bytes(32) + keccak256(place)),
        sender=ATTRIBUTES_DEPOSITOR,
        to=L1_BLOCK,
        mint=0,
        value=0,
        gas_limit=ATTRIBUTES_GAS,
        input=attributes,
    )


def stray_deposit(base: Base, seed: int) -> Transaction:
    """An empty deposit from a derived address."""
    return deposit_transaction(
        source_hash=derive(seed, "stray", base.block_number, base.parent_hash),
        sender=derive(seed, "stranger", base.block_number)[12:],
        to=derive(seed, "stranger", 0)[12:],
        mint=0,
        value=0,
        gas_limit=STRAY_GAS,
        input=b"",
    )


def attributes_data(
    origin: L1Origin,
    fees: L1Fees,
    batcher: bytes,
    fork: OptimismFork = OptimismFork.JOVIAN,
) -> bytes:
    """The attributes: packed, big-endian, after the selector; before Ecotone as arguments."""
    if fork < OptimismFork.ECOTONE:
        return _bedrock_data(origin, fees, batcher)
    data = [
        next(selector for since, selector in SELECTORS if fork >= since),
        _NUMBERS.pack(
            fees.base_fee_scalar,
            fees.blob_base_fee_scalar,
            origin.sequence_number,
            origin.timestamp,
            origin.number,
        ),
        fees.base_fee.to_bytes(32),
        fees.blob_base_fee.to_bytes(32),
        origin.hash,
        batcher.rjust(32, b"\0"),
    ]
    if fork >= OptimismFork.ISTHMUS:
        data.append(_OPERATOR.pack(fees.operator_fee_scalar, fees.operator_fee_constant))
    if fork >= OptimismFork.JOVIAN:
        data.append(fees.da_footprint_gas_scalar.to_bytes(2))
    return b"".join(data)


def _bedrock_data(origin: L1Origin, fees: L1Fees, batcher: bytes) -> bytes:
    """The arguments of setL1BlockValues, a word each."""
    numbers = (
        origin.number,
        origin.timestamp,
        fees.base_fee,
        int.from_bytes(origin.hash),
        origin.sequence_number,
        int.from_bytes(batcher),
        BEDROCK_OVERHEAD,
        BEDROCK_SCALAR,
    )
    return BEDROCK + b"".join(number.to_bytes(32) for number in numbers)


def l1_fees_of(attributes: bytes) -> L1Fees:
    """The prices of L1 in these attributes; those of dev chains without any."""
    found = decode_attributes(attributes)
    return found.fees if isinstance(found, EcotoneAttributes) else L1_FEES


def terms_of(
    base: Base,
    profile: ChainProfile,
    transaction_gas: int | None,
    excess_blob_gas: int = 0,
    l1_fees: L1Fees = L1_FEES,
    *,
    start_gas: int = ATTRIBUTES_GAS_USED,
) -> Terms:
    """The terms of the block with this base; its deposits use `start_gas`."""
    rules = profile.rules(base.block_number, base.timestamp, merged=True)
    minimum, taken = 0, 0
    if rules.optimism is not None:
        minimum = fee_parameters(base.extra_data, rules).minimum_base_fee
        taken = start_gas
    caps = (profile.transaction_gas_cap(rules), transaction_gas)
    return Terms(
        chain_id=profile.chain_id,
        rules=rules,
        gas_limit=base.gas_limit - taken,
        base_fee=base.base_fee_per_gas,
        minimum_base_fee=minimum,
        l1_fees=l1_fees,
        transaction_gas_cap=min((cap for cap in caps if cap is not None), default=None),
        init_code_size=profile.init_code_size,
        blobs=_blob_terms(base, rules, profile, excess_blob_gas),
    )


def _blob_terms(base: Base, rules: Rules, profile: ChainProfile, excess: int) -> BlobTerms | None:
    parameters = profile.blob_parameters(base.timestamp)
    if parameters is None:
        return None
    most = parameters.maximum
    of_one = min(most, BLOBS_PER_TRANSACTION) if rules.ethereum >= EthereumFork.OSAKA else most
    return BlobTerms(blob_base_fee(excess, parameters), most, of_one)


def fee_parameters(extra_data: bytes, rules: Rules) -> FeeParameters:
    """The fee parameters in the extra data of a header; zeros if its fork has none."""
    if rules.optimism is None or not rules.includes(OptimismFork.HOLOCENE):
        return FeeParameters(0, 0, 0)
    return decode_extra_data(extra_data, rules.optimism)


def _extra_data(
    parent: Header,
    rules: tuple[Rules, Rules],
    profile: ChainProfile,
    minimum_base_fee: int | None,
) -> bytes:
    """The parent's, its zeros replaced: only a genesis may omit the constants of the chain."""
    of_block, of_parent = rules
    if of_block.optimism is None:
        return b""
    found = fee_parameters(parent.extra_data, of_parent)
    elasticity, denominator = profile.elasticity(of_block)
    minimum = found.minimum_base_fee if minimum_base_fee is None else minimum_base_fee
    return encode_extra_data(
        FeeParameters(found.denominator or denominator, found.elasticity or elasticity, minimum),
        of_block.optimism,
    )


def _batcher(seed: int) -> bytes:
    return derive(seed, "batcher", 0)[12:]


def l1_origin(seed: int, block: int, timestamp: int, block_time: float) -> L1Origin:
    """The origin of an L2 block.

    Its time is that of the first L2 block that refers to it, as if no time had been jumped
    over since.
    """
    blocks = BLOCKS_PER_ORIGIN if block_time >= 1 else round(L1_BLOCK_TIME / block_time)
    epoch, sequence_number = divmod(block, blocks)
    number = FIRST_NUMBER + epoch
    return L1Origin(
        number=number,
        hash=derive(seed, "l1", number),
        timestamp=timestamp - int(sequence_number * block_time),
        sequence_number=sequence_number,
    )


def derive(seed: int, what: str, number: int, parent_hash: bytes = b"") -> bytes:
    """32 pseudo-random bytes, the same for the same seed and place."""
    return keccak256(b"".join((seed.to_bytes(8), what.encode(), parent_hash, number.to_bytes(8))))
