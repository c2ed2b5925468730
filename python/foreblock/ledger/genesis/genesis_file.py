"""Genesis files in geth's format: block 0, and the accounts of a chain.

Reading is strict; a refused value is named by its path. The header lacks only the roots that
follow from the accounts (the state root and, on OP chains since Isthmus, the withdrawals root);
`seal` adds them once a trie has them. Reading a written file returns an equal value.

`read_allocation` accepts accounts in three forms:

    geth      {"0xADDRESS": {"balance": …, "nonce": …, "code": …, "storage": {…}}, …}
    genesis   the same under `alloc`; the rest of the file is ignored
    anvil     the same under `accounts`, as anvil --dump-state writes it; blocks and transactions
              of the dump are ignored

anvil_dumpState returns the last form as gzip in hex; a file may contain that, too, with or without
the hex.
"""

import hashlib
import json
import zlib
from typing import Final

from msgspec import Struct, field

from foreblock._engine import Header, keccak256
from foreblock.errors import BadGenesis
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.check import EMPTY_OMMERS_HASH, EMPTY_REQUESTS_HASH, EMPTY_ROOT
from foreblock.ledger.rules.fees import INITIAL_BASE_FEE, decode_extra_data
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.primitives import (
    ZERO_ADDRESS,
    ZERO_HASH,
    format_data,
    format_quantity,
    parse_address,
)

DEFAULT_GAS_LIMIT: Final = 4_712_388  # geth, if the genesis has 0

_KEYS: Final = {
    "config",
    "nonce",
    "timestamp",
    "extraData",
    "gasLimit",
    "difficulty",
    "mixHash",
    "coinbase",
    "alloc",
    "number",
    "gasUsed",
    "parentHash",
    "baseFeePerGas",
    "excessBlobGas",
    "blobGasUsed",
}
# The last two are notes for people in some genesis files.
_ACCOUNT_KEYS: Final = {"balance", "nonce", "code", "storage", "secretKey", "comment"}


class GenesisAccount(Struct, frozen=True):
    """An account of block 0; it may be empty."""

    balance: int = 0
    nonce: int = 0
    code: bytes = b""
    storage: dict[int, int] = field(default_factory=dict)


class Genesis(Struct, frozen=True):
    """The start of a chain: header fields of block 0 and accounts."""

    profile: ChainProfile
    config: bytes  # the section as JSON text, kept so that a store can rebuild the profile
    accounts: dict[bytes, GenesisAccount]
    rules: Rules
    difficulty: int
    timestamp: int
    gas_limit: int
    gas_used: int
    extra_data: bytes
    nonce: bytes
    mix_hash: bytes
    coinbase: bytes
    parent_hash: bytes
    base_fee: int | None
    blob_gas_used: int | None
    excess_blob_gas: int | None

    def seal(self, state_root: bytes, message_passer_root: bytes) -> Header:
        """The header of block 0 over these roots."""
        fork = self.rules.ethereum
        return Header(
            parent_hash=self.parent_hash,
            ommers_hash=EMPTY_OMMERS_HASH,
            beneficiary=self.coinbase,
            state_root=state_root,
            transactions_root=EMPTY_ROOT,
            receipts_root=EMPTY_ROOT,
            logs_bloom=bytes(256),
            difficulty=self.difficulty,
            number=0,
            gas_limit=self.gas_limit,
            gas_used=self.gas_used,
            timestamp=self.timestamp,
            extra_data=self.extra_data,
            mix_hash=self.mix_hash,
            nonce=self.nonce,
            base_fee_per_gas=self.base_fee,
            withdrawals_root=self._withdrawals_root(message_passer_root),
            blob_gas_used=self.blob_gas_used,
            excess_blob_gas=self.excess_blob_gas,
            parent_beacon_block_root=ZERO_HASH if fork >= EthereumFork.CANCUN else None,
            requests_hash=EMPTY_REQUESTS_HASH if fork >= EthereumFork.PRAGUE else None,
        )

    def digest_of_accounts(self) -> bytes:
        """SHA-256 over the accounts, independent of how the file writes them."""
        digest = hashlib.sha256()
        for address, account in sorted(self.accounts.items()):
            digest.update(address + account.balance.to_bytes(32) + account.nonce.to_bytes(8))
            digest.update(len(account.code).to_bytes(8) + account.code)
            digest.update(len(account.storage).to_bytes(8))
            for slot, value in sorted(account.storage.items()):
                digest.update(slot.to_bytes(32) + value.to_bytes(32))
        return digest.digest()

    def _withdrawals_root(self, message_passer_root: bytes) -> bytes | None:
        if self.rules.includes(OptimismFork.ISTHMUS):
            return message_passer_root
        return EMPTY_ROOT if self.rules.ethereum >= EthereumFork.SHANGHAI else None


def read_genesis(text: bytes) -> Genesis:
    """The genesis in this JSON text, or `BadGenesis`."""
    root = JsonValue.parse(text, BadGenesis)
    root.known(_KEYS)
    profile = read_profile(root.need("config"))
    _refuse_other_start(root)
    timestamp = _number(root, "timestamp")
    rules = profile.rules_of_genesis(timestamp)
    return Genesis(
        profile=profile,
        config=root.need("config").text(),
        accounts=read_accounts(root.need("alloc")),
        rules=rules,
        difficulty=root.need("difficulty").number(256),
        timestamp=timestamp,
        gas_limit=root.need("gasLimit").number() or DEFAULT_GAS_LIMIT,
        gas_used=_number(root, "gasUsed"),
        extra_data=_extra_data(root, rules),
        nonce=_number(root, "nonce").to_bytes(8),
        mix_hash=_hash(root, "mixHash"),
        coinbase=_coinbase(root),
        parent_hash=_hash(root, "parentHash"),
        base_fee=_since(root, "baseFeePerGas", INITIAL_BASE_FEE, rules, EthereumFork.LONDON),
        blob_gas_used=_since(root, "blobGasUsed", 0, rules, EthereumFork.CANCUN),
        excess_blob_gas=_since(root, "excessBlobGas", 0, rules, EthereumFork.CANCUN),
    )


def _refuse_other_start(root: JsonValue) -> None:
    number = root.get("number")
    if number is not None and number.number() != 0:
        number.refuse("a chain begins at block 0")


def read_accounts(alloc: JsonValue) -> dict[bytes, GenesisAccount]:
    """The accounts of an allocation, by address."""
    accounts: dict[bytes, GenesisAccount] = {}
    for key, member in alloc.items():
        # geth writes the addresses without 0x and reads them either way.
        prefixed = key if key.startswith("0x") else f"0x{key}"
        try:
            address = parse_address(prefixed)
        except ValueError as why:
            member.refuse(str(why))
        if address in accounts:
            member.refuse("the address occurs twice")
        accounts[address] = _account(member)
    return accounts


def _account(member: JsonValue) -> GenesisAccount:
    member.known(_ACCOUNT_KEYS)
    code = member.get("code")
    return GenesisAccount(
        balance=_number(member, "balance", 256),
        nonce=_number(member, "nonce"),
        code=b"" if code is None else code.data(),
        storage=_storage(member.get("storage")),
    )


def _storage(member: JsonValue | None) -> dict[int, int]:
    """The slots that are not zero."""
    slots: dict[int, int] = {}
    if member is None:
        return slots
    for key, value in member.items():
        slot = value.replace(key if key.startswith("0x") else f"0x{key}").number(256)
        if slot in slots:
            value.refuse("the slot occurs twice")
        slots[slot] = value.number(256)
    return {slot: value for slot, value in slots.items() if value}


def _extra_data(root: JsonValue, rules: Rules) -> bytes:
    member = root.get("extraData")
    extra_data = b"" if member is None else member.data()
    if rules.includes(OptimismFork.HOLOCENE):
        assert rules.optimism is not None
        try:
            decode_extra_data(extra_data, rules.optimism)
        except ValueError as expected:
            raise BadGenesis("extraData", f"expected {expected} at this fork") from expected
    return extra_data


def _since(root: JsonValue, key: str, default: int, rules: Rules, fork: EthereumFork) -> int | None:
    """A header field that exists from `fork` on, with a default where the file has none."""
    member = root.get(key)
    if rules.ethereum >= fork:
        return default if member is None else member.number()
    if member is not None:
        member.refuse(f"set, but {fork.name.title()} is not in force at block 0")
    return None


def _number(parent: JsonValue, key: str, bits: int = 64) -> int:
    member = parent.get(key)
    return 0 if member is None else member.number(bits)


def _hash(root: JsonValue, key: str) -> bytes:
    member = root.get(key)
    return ZERO_HASH if member is None else member.hash()


def _coinbase(root: JsonValue) -> bytes:
    member = root.get("coinbase")
    return ZERO_ADDRESS if member is None else member.address()


_GZIP: Final = b"\x1f\x8b"
_IN_HEX: Final = b"0x1f8b"
_WINDOW: Final = 16 + zlib.MAX_WBITS  # zlib: a gzip stream
MOST_BYTES: Final = 1 << 30  # of the JSON text


def read_allocation(data: bytes, most: int = MOST_BYTES) -> dict[bytes, GenesisAccount]:
    """The accounts in the bytes of a file, by address; `most` bytes of JSON, once unpacked."""
    root = JsonValue.parse(_text(data, most), BadGenesis)
    for key in ("alloc", "accounts"):
        member = root.get(key)
        if member is not None:
            return read_accounts(member)
    return read_accounts(root)


def _text(data: bytes, most: int) -> bytes:
    if data[: len(_IN_HEX)].lower() == _IN_HEX:
        try:
            data = bytes.fromhex(data[2:].decode("ascii"))
        except ValueError:
            raise BadGenesis("alloc", "expected gzip in hex") from None
    if not data.startswith(_GZIP):
        return data
    stream = zlib.decompressobj(_WINDOW)
    try:
        text = stream.decompress(data, most)
    except zlib.error as why:
        raise BadGenesis("alloc", f"not gzip: {why}") from None
    if not stream.eof:
        is_large = bool(stream.unconsumed_tail)
        raise BadGenesis("alloc", f"larger than {most} bytes" if is_large else "it ends too early")
    return text


GENESIS_FILE: Final = "genesis.json"  # in the folder of a store, for followers of its chain
SHORT_STRING_BYTES: Final = 31  # of a slot; the last byte is the length


def genesis_text(genesis: Genesis) -> bytes:
    """The genesis as JSON text in geth's format, addresses in order."""
    document: dict[str, object] = {
        "config": json.loads(genesis.config),
        "nonce": format_data(genesis.nonce),
        "timestamp": format_quantity(genesis.timestamp),
        "extraData": format_data(genesis.extra_data),
        "gasLimit": format_quantity(genesis.gas_limit),
        "gasUsed": format_quantity(genesis.gas_used),
        "difficulty": format_quantity(genesis.difficulty),
        "mixHash": format_data(genesis.mix_hash),
        "coinbase": format_data(genesis.coinbase),
        "number": "0x0",
        "parentHash": format_data(genesis.parent_hash),
    }
    for key, number in (
        ("baseFeePerGas", genesis.base_fee),
        ("blobGasUsed", genesis.blob_gas_used),
        ("excessBlobGas", genesis.excess_blob_gas),
    ):
        if number is not None:
            document[key] = format_quantity(number)
    document["alloc"] = {
        format_data(address): _account_json(account)
        for address, account in sorted(genesis.accounts.items())
    }
    return json.dumps(document, indent=2).encode() + b"\n"


def _account_json(account: GenesisAccount) -> dict[str, object]:
    """The fields of an account that are set, and always its balance, which other clients need."""
    document: dict[str, object] = {"balance": format_quantity(account.balance)}
    if account.nonce:
        document["nonce"] = format_quantity(account.nonce)
    if account.code:
        document["code"] = format_data(account.code)
    if account.storage:
        document["storage"] = {
            _word(slot): _word(value) for slot, value in sorted(account.storage.items())
        }
    return document


def _word(number: int) -> str:
    return format_data(number.to_bytes(32))


def mapping_slot(slot: int, address: bytes) -> int:
    """The slot of an address's entry in the mapping declared at `slot`."""
    return int.from_bytes(keccak256(address.rjust(32, b"\0") + slot.to_bytes(32)))


def short_string(text: str) -> int:
    """The value of a slot that holds a text of at most 31 bytes: left-aligned, length doubled."""
    data = text.encode()
    assert len(data) <= SHORT_STRING_BYTES
    return int.from_bytes(data.ljust(SHORT_STRING_BYTES, b"\0") + bytes([2 * len(data)]))
