"""The checks of a transaction before the pool looks at its sender: values in, values out.

The order of the checks is geth's and decides which refusal a client sees when several
apply. Nonce and funds need the sender's account and come after, in `transaction_pool`.
"""

from typing import Final

from msgspec import Struct

from foreblock.errors import (
    ExceedsBlockGasLimit,
    FeeCapBelowMinimum,
    FloorGasTooLow,
    GasLimitTooHigh,
    InitCodeTooLarge,
    IntrinsicGasTooLow,
    LastNonce,
    NoAuthorizations,
    OversizedData,
    TipAboveFeeCap,
    UnsupportedType,
    WrongBlobCount,
    WrongChain,
)
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import OptimismFork, Rules
from foreblock.ledger.rules.l1 import (
    BedrockAttributes,
    EcotoneAttributes,
    L1Attributes,
    L1Costs,
    L1Fees,
)
from foreblock.ledger.rules.transaction_rules import (
    BLOB,
    DEPOSIT,
    MAX_INIT_CODE,
    POST_EXEC,
    floor_gas,
    intrinsic_gas,
    unsigned_nonce,
)
from foreblock.types import Transaction, estimated_compressed_size

MAX_SIZE: Final = 128 * 1024  # bytes, geth: four slots of 32 KiB
MAX_NONCE: Final = 2**64 - 1  # EIP-2681

# As on Base mainnet in block 50393250: a smallest transaction costs 1,918,900,020 wei of L1 fee.
L1_FEES: Final = L1Fees(
    base_fee=184_831_724,
    blob_base_fee=11_819_775,
    base_fee_scalar=2_269,
    blob_base_fee_scalar=1_055_762,
    operator_fee_scalar=0,
    operator_fee_constant=0,
    da_footprint_gas_scalar=148,
)

# As on OP Mainnet before Ecotone: gas for each transaction, and millionths of the base fee of L1.
BEDROCK_OVERHEAD: Final = 188
BEDROCK_SCALAR: Final = 684_000


class Terms(Struct, frozen=True):
    """The terms on which the block in progress takes a transaction."""

    chain_id: int
    rules: Rules
    gas_limit: int  # of the block, less what its deposit may need
    base_fee: int
    minimum_base_fee: int  # the base fee of no later block is below it
    l1_fees: L1Fees
    transaction_gas_cap: int | None = None  # that one may have at most; none: of the block
    init_code_size: int = MAX_INIT_CODE
    blobs: "BlobTerms | None" = None  # None if blocks have no blobs


class BlobTerms(Struct, frozen=True):
    """The terms on which a block takes blobs."""

    base_fee: int  # wei for a unit of blob gas
    most: int  # in a block
    most_of_one: int  # of a transaction

    def take(self, pooled: "Pooled", blobs: int) -> bool:
        """Return True if a transaction fits beside this number of blobs and pays enough."""
        return blobs + pooled.blobs <= self.most and pooled.blob_fee_cap >= self.base_fee


class Pooled(Struct, frozen=True, eq=False):
    """A transaction that waits, with the values that the pool needs again and again."""

    transaction: Transaction
    arrival: int  # no two have the same; the earlier one is lower
    hash: bytes
    sender: bytes
    nonce: int
    gas_limit: int
    fee_cap: int
    tip_cap: int
    cost: int  # at most: value, gas at the fee cap, L1 fee, operator fee
    data_footprint: int
    size: int  # bytes of its encoding
    is_free: bool = False  # an unsigned transaction pays no fees
    blobs: int = 0
    blob_fee_cap: int = 0

    def tip(self, base_fee: int) -> int:
        """Its payment above this base fee for a unit of gas; below 0 if it cannot pay that."""
        return 0 if self.is_free else min(self.tip_cap, self.fee_cap - base_fee)

    def pays(self, base_fee: int) -> bool:
        """Return True if a block with this base fee includes it."""
        return self.is_free or self.fee_cap >= base_fee


def admit(transaction: Transaction, terms: Terms, arrival: int) -> Pooled:
    """The transaction as the pool keeps it, or the `PoolRefusal` that it deserves."""
    if transaction.type == DEPOSIT:
        return _admit_unsigned(transaction, terms, arrival)
    fee_cap = transaction.max_fee_per_gas
    tip_cap = transaction.max_priority_fee_per_gas
    if fee_cap is None or tip_cap is None:
        fee_cap = tip_cap = transaction.gas_price or 0
    _check_form(transaction, terms)
    if tip_cap > fee_cap:
        raise TipAboveFeeCap
    if transaction.chain_id not in (None, terms.chain_id):
        raise WrongChain(transaction.chain_id or 0, terms.chain_id)
    if transaction.nonce == MAX_NONCE:
        raise LastNonce
    _check_gas(transaction, terms)
    if transaction.authorization_list == ():
        raise NoAuthorizations
    if fee_cap < terms.minimum_base_fee:
        raise FeeCapBelowMinimum(fee_cap, terms.minimum_base_fee)
    return _pooled(transaction, terms, arrival, fee_cap, tip_cap)


def _pooled(
    transaction: Transaction, terms: Terms, arrival: int, fee_cap: int, tip_cap: int
) -> Pooled:
    gas = transaction.gas_limit
    l1_fee, footprint = _l1_charges(transaction.raw, gas, terms)
    cost = transaction.value + gas * fee_cap + l1_fee
    blobs, blob_fee_cap = 0, 0
    if transaction.type == BLOB:
        blobs = len(transaction.blob_versioned_hashes or ())
        blob_fee_cap = transaction.max_fee_per_blob_gas or 0
        cost += blobs * GAS_PER_BLOB * blob_fee_cap
    return Pooled(
        transaction=transaction,
        arrival=arrival,
        hash=transaction.hash,
        sender=transaction.sender,
        nonce=transaction.nonce,
        gas_limit=gas,
        fee_cap=fee_cap,
        tip_cap=tip_cap,
        cost=cost,
        data_footprint=footprint,
        size=len(transaction.raw),
        blobs=blobs,
        blob_fee_cap=blob_fee_cap,
    )


def _admit_unsigned(transaction: Transaction, terms: Terms, arrival: int) -> Pooled:
    """Admit a deposit that stands for a transaction without a signature."""
    nonce = unsigned_nonce(transaction)
    if nonce is None:
        raise UnsupportedType(DEPOSIT)
    _check_size(transaction, terms)
    if nonce == MAX_NONCE:
        raise LastNonce
    _check_gas(transaction, terms)
    return Pooled(
        transaction=transaction,
        arrival=arrival,
        hash=transaction.hash,
        sender=transaction.sender,
        nonce=nonce,
        gas_limit=transaction.gas_limit,
        fee_cap=0,
        tip_cap=0,
        cost=transaction.value,
        data_footprint=0,
        size=len(transaction.raw),
        is_free=True,
    )


def _l1_charges(raw: bytes, gas: int, terms: Terms) -> tuple[int, int]:
    """The most that L1 and the operator charge, in wei, and the share of the block's data."""
    fork, fees = terms.rules.optimism, terms.l1_fees
    if fork is None:
        return 0, 0
    if fork < OptimismFork.FJORD:
        return L1Costs(_prices(fees, fork), fork).of(raw).fee, 0
    size = estimated_compressed_size(raw)
    fee = fees.data_fee(size)
    if fork >= OptimismFork.ISTHMUS:
        fee += fees.operator_fee(gas)  # Jovian's, which is no less than that of Isthmus
    return fee, fees.data_footprint(size) if fork >= OptimismFork.JOVIAN else 0


def _prices(fees: L1Fees, fork: OptimismFork) -> L1Attributes:
    if fork < OptimismFork.ECOTONE:
        return BedrockAttributes(fees.base_fee, BEDROCK_OVERHEAD, BEDROCK_SCALAR)
    return EcotoneAttributes(
        base_fee=fees.base_fee,
        blob_base_fee=fees.blob_base_fee,
        base_fee_scalar=fees.base_fee_scalar,
        blob_base_fee_scalar=fees.blob_base_fee_scalar,
        operator_fee_scalar=None,
        operator_fee_constant=None,
        da_footprint_gas_scalar=None,
    )


def _check_form(transaction: Transaction, terms: Terms) -> None:
    if transaction.type in {DEPOSIT, POST_EXEC} or (
        transaction.type == BLOB and terms.blobs is None
    ):
        raise UnsupportedType(transaction.type)
    if transaction.type == BLOB and terms.blobs is not None:
        found = len(transaction.blob_versioned_hashes or ())
        if not 0 < found <= terms.blobs.most_of_one:
            raise WrongBlobCount(found, terms.blobs.most_of_one)
    _check_size(transaction, terms)


def _check_size(transaction: Transaction, terms: Terms) -> None:
    size = len(transaction.raw)
    if size > MAX_SIZE:
        raise OversizedData(size, MAX_SIZE)
    if transaction.to is None and len(transaction.input) > terms.init_code_size:
        raise InitCodeTooLarge(len(transaction.input), terms.init_code_size)
    gas = transaction.gas_limit
    if terms.transaction_gas_cap is not None and gas > terms.transaction_gas_cap:
        raise GasLimitTooHigh(terms.transaction_gas_cap, gas)
    if gas > terms.gas_limit:
        raise ExceedsBlockGasLimit


def _check_gas(transaction: Transaction, terms: Terms) -> None:
    data, gas = transaction.input, transaction.gas_limit
    listed = transaction.access_list or ()
    needed = intrinsic_gas(
        data,
        creates=transaction.to is None,
        accessed=(len(listed), sum(len(slots) for _, slots in listed)),
        authorizations=len(transaction.authorization_list or ()),
        rules=terms.rules,
    )
    if gas < needed:
        raise IntrinsicGasTooLow(gas, needed)
    floor = floor_gas(data, terms.rules)
    if gas < floor:
        raise FloorGasTooLow(gas, floor)
