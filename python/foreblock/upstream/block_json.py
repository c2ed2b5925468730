"""Rebuild a block from the JSON that a node answers with. No I/O.

For endpoints without `debug_getRawBlock`. Fields are read strictly: a `ValueError` names the
one that is missing or malformed. Every transaction type of an OP block is supported, deposits
included. The caller compares the result with the header's transactions root and with the
block hash, so nothing is checked twice here.

Of uncles JSON has only the hashes: where a mined block has some, their headers have to be brought
along (`UnclesMissing` names them).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from foreblock.ledger.rules.transaction_rules import DEPOSIT, POST_EXEC
from foreblock.primitives import (
    RlpItem,
    encode_rlp,
    parse_address,
    parse_data,
    parse_hash,
    parse_quantity,
)
from foreblock.types import Block, Header, Withdrawal

T = TypeVar("T")


class Fields:
    """The members of one JSON object, by their JSON-RPC names."""

    def __init__(self, value: object, where: str = "") -> None:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where or 'the answer'}: expected an object")  # noqa: TRY004, see above
        self._members: Final[Mapping[str, object]] = value
        self._where: Final = where

    def number(self, name: str) -> int:
        """A quantity."""
        return self._read(name, parse_quantity)

    def number_or_none(self, name: str) -> int | None:
        """A quantity, or none if it is absent or null."""
        return None if self._members.get(name) is None else self.number(name)

    def data(self, name: str) -> bytes:
        """Bytes."""
        return self._read(name, parse_data)

    def hash(self, name: str) -> bytes:
        """32 bytes."""
        return self._read(name, parse_hash)

    def hash_or_none(self, name: str) -> bytes | None:
        """32 bytes, or none if absent or null."""
        return None if self._members.get(name) is None else self.hash(name)

    def address(self, name: str) -> bytes:
        """20 bytes."""
        return self._read(name, parse_address)

    def recipient(self, name: str) -> bytes:
        """An address; empty for a contract creation."""
        return b"" if self._members.get(name) is None else self.address(name)

    def flag(self, name: str) -> bool:
        """True or false; false if absent."""
        value = self._members.get(name)
        if value is not None and not isinstance(value, bool):
            raise ValueError(f"{self._where}{name}: expected true or false")
        return bool(value)

    def items(self, name: str) -> list["Fields"]:
        """A list of objects; empty if absent."""
        return [Fields(each, f"{where}: ") for where, each in self._list(name)]

    def hashes(self, name: str) -> list[bytes]:
        """A list of hashes; empty if absent."""
        found = []
        for where, each in self._list(name):
            try:
                found.append(parse_hash(each))
            except ValueError as why:
                raise ValueError(f"{where}: {why}") from why
        return found

    def has(self, name: str) -> bool:
        """Return True if the member is present and not null."""
        return self._members.get(name) is not None

    def _list(self, name: str) -> list[tuple[str, object]]:
        value = self._members.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ValueError(f"{self._where}{name}: expected a list")  # noqa: TRY004
        return [(f"{self._where}{name}[{at}]", each) for at, each in enumerate(value)]

    def _read(self, name: str, parse: Callable[[object], T]) -> T:
        if name not in self._members:
            raise ValueError(f"{self._where}{name}: missing")
        try:
            return parse(self._members[name])
        except ValueError as why:
            raise ValueError(f"{self._where}{name}: {why}") from why


class UnclesMissing(ValueError):
    """A block cannot be rebuilt without these uncles."""

    def __init__(self, block: bytes, hashes: Sequence[bytes]) -> None:
        super().__init__("uncles: a block with uncles cannot be rebuilt without them")
        self.block: Final = block  # its hash
        self.hashes: Final = hashes


def rebuild_block(answer: object, uncles: Sequence[Header] = ()) -> Block:
    """The block in a response to eth_getBlockByHash. Raises `ValueError`, which names the field."""
    block = Fields(answer)
    hashes, header = block.hashes("uncles"), _header(block)
    if hashes != [each.hash for each in uncles]:
        raise UnclesMissing(header.hash, hashes)
    return Block(
        header,
        [encode_transaction(each) for each in block.items("transactions")],
        uncles,
        withdrawals=_withdrawals(block) if block.has("withdrawals") else None,
    )


def rebuild_header(answer: object) -> Header:
    """The header of a block, from a response with or without whole transactions.

    Raises `ValueError`, which names the field.
    """
    return _header(Fields(answer))


def _header(block: Fields) -> Header:
    return Header(
        parent_hash=block.hash("parentHash"),
        ommers_hash=block.hash("sha3Uncles"),
        beneficiary=block.address("miner"),
        state_root=block.hash("stateRoot"),
        transactions_root=block.hash("transactionsRoot"),
        receipts_root=block.hash("receiptsRoot"),
        logs_bloom=block.data("logsBloom"),
        difficulty=block.number("difficulty"),
        number=block.number("number"),
        gas_limit=block.number("gasLimit"),
        gas_used=block.number("gasUsed"),
        timestamp=block.number("timestamp"),
        extra_data=block.data("extraData"),
        mix_hash=block.hash("mixHash"),
        nonce=block.data("nonce"),
        base_fee_per_gas=block.number_or_none("baseFeePerGas"),
        withdrawals_root=block.hash_or_none("withdrawalsRoot"),
        blob_gas_used=block.number_or_none("blobGasUsed"),
        excess_blob_gas=block.number_or_none("excessBlobGas"),
        parent_beacon_block_root=block.hash_or_none("parentBeaconBlockRoot"),
        requests_hash=block.hash_or_none("requestsHash"),
        block_access_list_hash=block.hash_or_none("blockAccessListHash"),
        slot_number=block.number_or_none("slotNumber"),
    )


def _withdrawals(block: Fields) -> list[Withdrawal]:
    return [
        (
            each.number("index"),
            each.number("validatorIndex"),
            each.address("address"),
            each.number("amount"),
        )
        for each in block.items("withdrawals")
    ]


def encode_transaction(transaction: Fields) -> bytes:
    """The transaction as the transactions trie holds it (EIP-2718)."""
    kind = transaction.number_or_none("type") or 0
    if kind == POST_EXEC:
        return bytes([kind]) + transaction.data("input")
    if kind not in _FIELDS:
        raise ValueError(f"unknown rules: transactions of type {kind:#x} are not known")
    prefix = bytes([kind]) if kind else b""
    return prefix + encode_rlp(_FIELDS[kind](transaction))


def _legacy(it: Fields) -> list[RlpItem]:
    price = [it.number("nonce"), it.number("gasPrice")]
    return [*price, *_message(it), it.number("v"), it.number("r"), it.number("s")]


def _with_access_list(it: Fields) -> list[RlpItem]:
    price = [it.number("chainId"), it.number("nonce"), it.number("gasPrice")]
    return [*price, *_message(it), _access_list(it), *_signature(it)]


def _dynamic_fee(it: Fields) -> list[RlpItem]:
    return [*_fees(it), *_message(it), _access_list(it), *_signature(it)]


def _blob(it: Fields) -> list[RlpItem]:
    blobs: list[RlpItem] = [it.number("maxFeePerBlobGas"), it.hashes("blobVersionedHashes")]
    return [*_fees(it), *_message(it), _access_list(it), *blobs, *_signature(it)]


def _set_code(it: Fields) -> list[RlpItem]:
    authorizations: list[RlpItem] = [_authorization(each) for each in it.items("authorizationList")]
    return [*_fees(it), *_message(it), _access_list(it), authorizations, *_signature(it)]


def _deposit(it: Fields) -> list[RlpItem]:
    """A deposit has no signature (OP stack specification, deposits)."""
    return [
        it.hash("sourceHash"),
        it.address("from"),
        it.recipient("to"),
        it.number_or_none("mint") or 0,
        it.number("value"),
        it.number("gas"),
        int(it.flag("isSystemTx")),
        it.data("input"),
    ]


def _fees(it: Fields) -> list[RlpItem]:
    return [
        it.number("chainId"),
        it.number("nonce"),
        it.number("maxPriorityFeePerGas"),
        it.number("maxFeePerGas"),
    ]


def _message(it: Fields) -> list[RlpItem]:
    return [it.number("gas"), it.recipient("to"), it.number("value"), it.data("input")]


def _access_list(it: Fields) -> RlpItem:
    return [_access(each) for each in it.items("accessList")]


def _access(it: Fields) -> RlpItem:
    return [it.address("address"), it.hashes("storageKeys")]


def _authorization(it: Fields) -> RlpItem:
    return [it.number("chainId"), it.address("address"), it.number("nonce"), *_signature(it)]


def _signature(it: Fields) -> list[RlpItem]:
    """Parity, r and s; some servers give the parity as `v` only."""
    parity = it.number("yParity") if it.has("yParity") else it.number("v")
    return [parity, it.number("r"), it.number("s")]


_FIELDS: Final[Mapping[int, Callable[[Fields], list[RlpItem]]]] = {
    0: _legacy,
    1: _with_access_list,
    2: _dynamic_fee,
    3: _blob,
    4: _set_code,
    DEPOSIT: _deposit,
}
