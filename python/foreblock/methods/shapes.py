"""Blocks and transactions as JSON text.

A transaction is written once, by the engine, without the hash of its block and without
braces: a *fragment*. A block is put together by joining fragments, the hash being the
separator, because the hash of a block in progress changes with every flashblock while
its transactions stay. Fields of later forks and of other transaction types are absent.
"""

from binascii import hexlify
from collections.abc import Sequence

from foreblock.types import Header, Withdrawal

DEPOSIT = 0x7E


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


def header_members(header: Header, size: int | None = None) -> bytes:
    """The members of a block object that come from its header, without braces.

    `size` is that of the whole block; a header by itself has none.
    """
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
        **({} if size is None else {b"size": write_quantity(size)}),
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
    return _object(
        {
            b"index": write_quantity(value.index),
            b"validatorIndex": write_quantity(value.validator_index),
            b"address": write_data(value.address),
            b"amount": write_quantity(value.amount),
        }
    )


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
