"""Blocks and transactions as JSON text.

A transaction is rendered once, without the hash of its block and without its closing
brace: a *fragment*. A block is put together by joining fragments, the hash being the
separator, because the hash of a block in progress changes with every flashblock while
its transactions stay. Fields of later forks and of other transaction types are absent.
"""

from binascii import hexlify
from collections.abc import Sequence

from foreblock.ledger.reading.stored_block import Authorization, Header, Transaction, Withdrawal
from foreblock.ledger.rules.transaction_types import DEPOSIT


def quantity(number: int) -> bytes:
    """A number, quoted."""
    return b'"0x%x"' % number


def data(value: bytes) -> bytes:
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
    """What a block object says of its header, without braces."""
    fields = {
        b"number": quantity(header.number),
        b"hash": data(header.hash),
        b"parentHash": data(header.parent_hash),
        b"nonce": data(header.nonce),
        b"sha3Uncles": data(header.ommers_hash),
        b"logsBloom": data(header.logs_bloom),
        b"transactionsRoot": data(header.transactions_root),
        b"stateRoot": data(header.state_root),
        b"receiptsRoot": data(header.receipts_root),
        b"miner": data(header.beneficiary),
        b"difficulty": quantity(header.difficulty),
        b"mixHash": data(header.mix_hash),
        b"extraData": data(header.extra_data),
        b"size": quantity(size),
        b"gasLimit": quantity(header.gas_limit),
        b"gasUsed": quantity(header.gas_used),
        b"timestamp": quantity(header.timestamp),
    }
    if header.base_fee_per_gas is not None:
        fields[b"baseFeePerGas"] = quantity(header.base_fee_per_gas)
    if header.withdrawals_root is not None:
        fields[b"withdrawalsRoot"] = data(header.withdrawals_root)
    if header.blob_gas_used is not None:
        fields[b"blobGasUsed"] = quantity(header.blob_gas_used)
    if header.excess_blob_gas is not None:
        fields[b"excessBlobGas"] = quantity(header.excess_blob_gas)
    if header.parent_beacon_block_root is not None:
        fields[b"parentBeaconBlockRoot"] = data(header.parent_beacon_block_root)
    if header.requests_hash is not None:
        fields[b"requestsHash"] = data(header.requests_hash)
    return members(fields)


def withdrawal(value: Withdrawal) -> bytes:
    """A withdrawal object."""
    return _object(
        {
            b"index": quantity(value.index),
            b"validatorIndex": quantity(value.validator_index),
            b"address": data(value.address),
            b"amount": quantity(value.amount),
        }
    )


def fragment(
    transaction: Transaction, index: int, header: Header, deposit: tuple[int, int] | None = None
) -> bytes:
    """A transaction of a block from its second member on, the closing brace left out.

    `deposit` are the nonce of a deposit and the version of its receipt, where they are known.
    """
    fields = {
        b"blockNumber": quantity(header.number),
        b"blockTimestamp": quantity(header.timestamp),
        b"transactionIndex": quantity(index),
        b"type": quantity(transaction.type),
        b"hash": data(transaction.hash),
        b"from": data(transaction.sender),
        b"to": b"null" if transaction.to is None else data(transaction.to),
        b"nonce": quantity(transaction.nonce),
        b"gas": quantity(transaction.gas_limit),
        b"gasPrice": quantity(transaction.effective_gas_price(header.base_fee_per_gas)),
        b"value": quantity(transaction.value),
        b"input": data(transaction.input),
        b"v": quantity(transaction.v),
        b"r": quantity(transaction.r),
        b"s": quantity(transaction.s),
    }
    if transaction.type == DEPOSIT:
        fields |= _deposit_fields(transaction, deposit)
    elif transaction.type:
        fields |= _typed_fields(transaction)
    if transaction.chain_id is not None:
        fields[b"chainId"] = quantity(transaction.chain_id)
    return members(fields)


def _typed_fields(transaction: Transaction) -> dict[bytes, bytes]:
    fields = {
        b"yParity": quantity(transaction.y_parity),
        b"accessList": array(
            [
                _object({b"address": data(address), b"storageKeys": array(list(map(data, keys)))})
                for address, keys in transaction.access_list or ()
            ]
        ),
    }
    if transaction.max_fee_per_gas is not None:
        fields[b"maxFeePerGas"] = quantity(transaction.max_fee_per_gas)
    if transaction.max_priority_fee_per_gas is not None:
        fields[b"maxPriorityFeePerGas"] = quantity(transaction.max_priority_fee_per_gas)
    if transaction.max_fee_per_blob_gas is not None:
        fields[b"maxFeePerBlobGas"] = quantity(transaction.max_fee_per_blob_gas)
    if transaction.blob_versioned_hashes is not None:
        hashes = list(map(data, transaction.blob_versioned_hashes))
        fields[b"blobVersionedHashes"] = array(hashes)
    if transaction.authorization_list is not None:
        fields[b"authorizationList"] = array(
            list(map(_authorization, transaction.authorization_list))
        )
    return fields


def _authorization(value: Authorization) -> bytes:
    return _object(
        {
            b"chainId": quantity(value.chain_id),
            b"address": data(value.address),
            b"nonce": quantity(value.nonce),
            b"yParity": quantity(value.y_parity),
            b"r": quantity(value.r),
            b"s": quantity(value.s),
        }
    )


def _deposit_fields(
    transaction: Transaction, deposit: tuple[int, int] | None
) -> dict[bytes, bytes]:
    fields = {
        b"sourceHash": data(transaction.source_hash or b""),
        b"mint": quantity(transaction.mint or 0),
        b"yParity": quantity(0),
    }
    if deposit is not None:
        fields[b"nonce"] = quantity(deposit[0])
        fields[b"depositReceiptVersion"] = quantity(deposit[1])
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
