"""Blocks and transactions as JSON text.

A transaction is rendered once, without the hash of its block and without its closing brace:
a *fragment*. A block is joined from fragments with the hash as separator, because the hash of
a block in progress changes with every flashblock while its transactions stay. Fields of later
forks and of other transaction types are absent.
"""

from binascii import hexlify
from collections.abc import Sequence

from foreblock.ledger.reading.stored_block import Authorization, Header, Transaction, Withdrawal
from foreblock.ledger.rules.transaction_types import DEPOSIT


def write_quantity(number: int) -> bytes:
    """A number, quoted."""
    return b'"0x%x"' % number


def write_data(value: bytes) -> bytes:
    """Bytes, quoted."""
    return b'"0x%b"' % hexlify(value)


def array(items: Sequence[bytes]) -> bytes:
    """An array of texts; joined, since formatting would copy long ones byte by byte."""
    return b"".join((b"[", b",".join(items), b"]"))


def _object(fields: dict[bytes, bytes]) -> bytes:
    return b"{%b}" % members(fields)


def members(fields: dict[bytes, bytes]) -> bytes:
    """The members of an object, without braces."""
    return b",".join([b'"%b":%b' % field for field in fields.items()])


def header_members(header: Header, size: int) -> bytes:
    """The members of a block object that come from its header, without braces."""
    fields = {
        b"number": write_quantity(header.number),
        b"hash": write_data(header.hash),
        b"parentHash": write_data(header.parent_hash),
        b"nonce": write_data(header.nonce),
        b"sha3Uncles": write_data(header.ommers_hash),
        b"logsBloom": write_data(header.logs_bloom),
        b"transactionsRoot": write_data(header.transactions_root),
        b"stateRoot": write_data(header.state_root),
        b"receiptsRoot": write_data(header.receipts_root),
        b"miner": write_data(header.beneficiary),
        b"difficulty": write_quantity(header.difficulty),
        b"mixHash": write_data(header.mix_hash),
        b"extraData": write_data(header.extra_data),
        b"size": write_quantity(size),
        b"gasLimit": write_quantity(header.gas_limit),
        b"gasUsed": write_quantity(header.gas_used),
        b"timestamp": write_quantity(header.timestamp),
    }
    if header.base_fee_per_gas is not None:
        fields[b"baseFeePerGas"] = write_quantity(header.base_fee_per_gas)
    if header.withdrawals_root is not None:
        fields[b"withdrawalsRoot"] = write_data(header.withdrawals_root)
    if header.blob_gas_used is not None:
        fields[b"blobGasUsed"] = write_quantity(header.blob_gas_used)
    if header.excess_blob_gas is not None:
        fields[b"excessBlobGas"] = write_quantity(header.excess_blob_gas)
    if header.parent_beacon_block_root is not None:
        fields[b"parentBeaconBlockRoot"] = write_data(header.parent_beacon_block_root)
    if header.requests_hash is not None:
        fields[b"requestsHash"] = write_data(header.requests_hash)
    return members(fields)


def withdrawal(value: Withdrawal) -> bytes:
    """A withdrawal object."""
    return _object(
        {
            b"index": write_quantity(value.index),
            b"validatorIndex": write_quantity(value.validator_index),
            b"address": write_data(value.address),
            b"amount": write_quantity(value.amount),
        }
    )


def fragment(
    transaction: Transaction, index: int, header: Header, deposit: tuple[int, int] | None = None
) -> bytes:
    """A transaction of a block from its second member on, the closing brace left out.

    `deposit` is the nonce of a deposit and the version of its receipt, where known.
    """
    fields = {
        b"blockNumber": write_quantity(header.number),
        b"blockTimestamp": write_quantity(header.timestamp),
        b"transactionIndex": write_quantity(index),
        b"type": write_quantity(transaction.type),
        b"hash": write_data(transaction.hash),
        b"from": write_data(transaction.sender),
        b"to": b"null" if transaction.to is None else write_data(transaction.to),
        b"nonce": write_quantity(transaction.nonce),
        b"gas": write_quantity(transaction.gas_limit),
        b"gasPrice": write_quantity(transaction.effective_gas_price(header.base_fee_per_gas)),
        b"value": write_quantity(transaction.value),
        b"input": write_data(transaction.input),
        b"v": write_quantity(transaction.v),
        b"r": write_quantity(transaction.r),
        b"s": write_quantity(transaction.s),
    }
    if transaction.type == DEPOSIT:
        fields |= _deposit_fields(transaction, deposit)
    elif transaction.type:
        fields |= _typed_fields(transaction)
    if transaction.chain_id is not None:
        fields[b"chainId"] = write_quantity(transaction.chain_id)
    return members(fields)


def _typed_fields(transaction: Transaction) -> dict[bytes, bytes]:
    fields = {
        b"yParity": write_quantity(transaction.y_parity),
        b"accessList": array(
            [
                _object(
                    {
                        b"address": write_data(address),
                        b"storageKeys": array(list(map(write_data, keys))),
                    }
                )
                for address, keys in transaction.access_list or ()
            ]
        ),
    }
    if transaction.max_fee_per_gas is not None:
        fields[b"maxFeePerGas"] = write_quantity(transaction.max_fee_per_gas)
    if transaction.max_priority_fee_per_gas is not None:
        fields[b"maxPriorityFeePerGas"] = write_quantity(transaction.max_priority_fee_per_gas)
    if transaction.max_fee_per_blob_gas is not None:
        fields[b"maxFeePerBlobGas"] = write_quantity(transaction.max_fee_per_blob_gas)
    if transaction.blob_versioned_hashes is not None:
        hashes = list(map(write_data, transaction.blob_versioned_hashes))
        fields[b"blobVersionedHashes"] = array(hashes)
    if transaction.authorization_list is not None:
        fields[b"authorizationList"] = array(
            list(map(_authorization, transaction.authorization_list))
        )
    return fields


def _authorization(value: Authorization) -> bytes:
    return _object(
        {
            b"chainId": write_quantity(value.chain_id),
            b"address": write_data(value.address),
            b"nonce": write_quantity(value.nonce),
            b"yParity": write_quantity(value.y_parity),
            b"r": write_quantity(value.r),
            b"s": write_quantity(value.s),
        }
    )


def _deposit_fields(
    transaction: Transaction, deposit: tuple[int, int] | None
) -> dict[bytes, bytes]:
    fields = {
        b"sourceHash": write_data(transaction.source_hash or b""),
        b"mint": write_quantity(transaction.mint or 0),
        b"yParity": write_quantity(0),
    }
    if deposit is not None:
        fields[b"nonce"] = write_quantity(deposit[0])
        fields[b"depositReceiptVersion"] = write_quantity(deposit[1])
    if transaction.is_system_transaction:
        fields[b"isSystemTx"] = b"true"
    return fields


def whole_transaction(block_hash: bytes, fragment: bytes) -> bytes:
    """A transaction by itself."""
    return b'{"blockHash":"0x%b",%b}' % (hexlify(block_hash), fragment)


def join_fragments(block_hash: bytes, fragments: Sequence[bytes]) -> bytes:
    """The `transactions` member of a block with full transactions."""
    if not fragments:
        return b"[]"
    opening = b'{"blockHash":"0x%b",' % hexlify(block_hash)
    separator = b"}," + opening
    return b"".join((b"[", opening, separator.join(fragments), b"}]"))
