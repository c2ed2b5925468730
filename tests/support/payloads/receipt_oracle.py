"""Receipts as JSON, rendered in Python from decoded receipts: the oracle for the engine's."""

from binascii import hexlify
from typing import Final

from checker.receipts import Log, bloom
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.stored_block import PlacedReceipt
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import OptimismFork
from foreblock.ledger.rules.l1 import (
    FREE,
    MILLION,
    BedrockAttributes,
    EcotoneAttributes,
    L1Attributes,
    L1Costs,
)
from foreblock.ledger.rules.transaction_rules import DEPOSIT
from foreblock.methods.shapes import array, members, write_data, write_quantity

NULL: Final = b"null"


class ReceiptOracle:
    """Renders receipts of one block; holds their shared fields."""

    def __init__(self, block: ReadableBlock, attributes: L1Attributes | None) -> None:
        place = {b"blockHash": write_data(block.hash), b"blockNumber": write_quantity(block.number)}
        time = {b"blockTimestamp": write_quantity(block.header.timestamp)}
        self._block: Final = block
        self._fork: Final = block.rules.optimism
        self._log_end: Final = members(place | time | {b"removed": b"false"})
        self._costs: L1Costs | None = None
        if self._fork is not None and attributes is not None:
            self._costs = L1Costs(attributes, self._fork)
            place |= _prices(attributes)
        self._end: Final = members(place)

    def receipt(self, placed: PlacedReceipt) -> bytes:
        """The receipt as JSON."""
        transaction, receipt = placed.transaction, placed.receipt
        to, created = transaction.to, placed.created
        return (
            b'{"transactionHash":"0x%b","transactionIndex":"0x%x","type":"0x%x","from":"0x%b",'
            b'"to":%b,"cumulativeGasUsed":"0x%x","gasUsed":"0x%x","effectiveGasPrice":"0x%x",'
            b'"contractAddress":%b,"logs":%b,"logsBloom":"0x%b",%b,%b}'
            % (
                hexlify(transaction.hash),
                placed.before.transactions,
                transaction.type,
                hexlify(transaction.sender),
                NULL if to is None else write_data(to),
                receipt.cumulative_gas_used,
                placed.gas_used,
                transaction.effective_gas_price(self._block.header.base_fee_per_gas),
                NULL if created is None else write_data(created),
                self._logs(placed),
                hexlify(bloom(Log(*log) for log in receipt.logs)),
                members(self._optional_fields(placed)),
                self._end,
            )
        )

    def _logs(self, placed: PlacedReceipt) -> bytes:
        logs = placed.receipt.logs
        if not logs:
            return b"[]"
        end = b'"transactionHash":"0x%b","transactionIndex":"0x%x",%b' % (
            hexlify(placed.transaction.hash),
            placed.before.transactions,
            self._log_end,
        )
        return array(
            [
                b'{"address":"0x%b","topics":%b,"data":"0x%b","logIndex":"0x%x",%b}'
                % (
                    hexlify(address),
                    array(list(map(write_data, topics))),
                    hexlify(data),
                    index,
                    end,
                )
                for index, (address, topics, data) in enumerate(logs, placed.before.logs)
            ]
        )

    def _optional_fields(self, placed: PlacedReceipt) -> dict[bytes, bytes]:
        """Fields that depend on fork and type."""
        transaction, receipt = placed.transaction, placed.receipt
        if receipt.post_state is not None:
            fields = {b"root": write_data(receipt.post_state)}
        else:
            fields = {b"status": write_quantity(bool(receipt.status))}
        if transaction.blob_versioned_hashes is not None:
            blob_gas = GAS_PER_BLOB * len(transaction.blob_versioned_hashes)
            fields[b"blobGasUsed"] = write_quantity(blob_gas)
            fields[b"blobGasPrice"] = write_quantity(self._block.context.blob_fee)
        if self._fork is not None:
            self._add_optimism_fields(fields, placed, self._fork)
        return fields

    def _add_optimism_fields(
        self, fields: dict[bytes, bytes], placed: PlacedReceipt, fork: OptimismFork
    ) -> None:
        transaction, receipt = placed.transaction, placed.receipt
        cost = FREE
        if transaction.type == DEPOSIT:
            if receipt.deposit_nonce is not None:
                fields[b"depositNonce"] = write_quantity(receipt.deposit_nonce)
            if receipt.deposit_receipt_version is not None:
                fields[b"depositReceiptVersion"] = write_quantity(receipt.deposit_receipt_version)
        elif self._costs is not None:
            cost = self._costs.of(transaction.raw)
        if self._costs is not None:
            fields[b"l1GasUsed"] = write_quantity(cost.gas)
            fields[b"l1Fee"] = write_quantity(cost.fee)
        if fork >= OptimismFork.JOVIAN:
            fields[b"blobGasUsed"] = write_quantity(cost.footprint)


def _prices(attributes: L1Attributes) -> dict[bytes, bytes]:
    fields = {b"l1GasPrice": write_quantity(attributes.base_fee)}
    if isinstance(attributes, BedrockAttributes):
        fields[b"l1FeeScalar"] = b'"%b"' % f"{attributes.scalar / MILLION:g}".encode()
        return fields
    fields |= {
        b"l1BlobBaseFee": write_quantity(attributes.blob_base_fee),
        b"l1BaseFeeScalar": write_quantity(attributes.base_fee_scalar),
        b"l1BlobBaseFeeScalar": write_quantity(attributes.blob_base_fee_scalar),
    }
    return fields | _later_prices(attributes)


def _later_prices(attributes: EcotoneAttributes) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    scalar, constant = attributes.operator_fee_scalar or 0, attributes.operator_fee_constant or 0
    if scalar or constant:  # both or neither, as in other nodes
        fields[b"operatorFeeScalar"] = write_quantity(scalar)
        fields[b"operatorFeeConstant"] = write_quantity(constant)
    if attributes.da_footprint_gas_scalar is not None:
        fields[b"daFootprintGasScalar"] = write_quantity(attributes.da_footprint_gas_scalar)
    return fields
