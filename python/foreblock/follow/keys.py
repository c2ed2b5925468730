"""What is wanted of the state of a chain, and what was found of it. Values. No I/O.

`Wanted` says which keys a run did not find: plain values, so that it can be made from what the
engine collects and sent between processes. `Found` has a value for some of them. A key that is
not in `Found` is not known: nothing here is ever zero or absent because something failed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from foreblock.errors import MissedKeys
from foreblock.types import Account, keccak256

EMPTY_CODE: Final = keccak256(b"")
# EIP-2935: the contract that keeps the hashes of the last blocks, in a ring of slots.
HISTORY_STORAGE: Final = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
HISTORY_WINDOW: Final = 8191
NO_ADDRESS: Final = b""
_NONE: Final[frozenset[int]] = frozenset()


class Wanted(NamedTuple):
    """Keys of one state. A code is named by its hash, with an account that has it.

    Where no such account is known, `NO_ADDRESS` stands in its place. `codes_of` are accounts
    whose code is wanted whatever its hash is, so that it comes in the same round trip.
    """

    accounts: frozenset[bytes] = frozenset()
    slots: Mapping[bytes, frozenset[int]] = {}
    codes: Mapping[bytes, bytes] = {}
    codes_of: frozenset[bytes] = frozenset()
    blocks: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return self.keys > 0

    @property
    def keys(self) -> int:
        """How many keys there are."""
        slots = sum(map(len, self.slots.values()))
        return len(self.accounts) + slots + len(self.codes) + len(self.codes_of) + len(self.blocks)

    def also(self, other: "Wanted") -> "Wanted":
        """The keys of both."""
        return all_of((self, other))

    def without(self, other: "Wanted") -> "Wanted":
        """These keys without those of another."""
        slots = {a: keys - other.slots.get(a, _NONE) for a, keys in self.slots.items()}
        return Wanted(
            self.accounts - other.accounts,
            {address: keys for address, keys in slots.items() if keys},
            {code: at for code, at in self.codes.items() if code not in other.codes},
            self.codes_of - other.codes_of,
            self.blocks - other.blocks,
        )

    def first(self, most: int) -> "Wanted":
        """Up to about `most` of these keys, those of an account together if they fit."""
        if self.keys <= most:
            return self
        addresses = sorted(self.accounts | self.slots.keys() | self.codes_of)
        slots: dict[bytes, frozenset[int]] = {}
        taken, room = set[bytes](), most
        for address in addresses:
            if room <= 0:
                break
            keys = sorted(self.slots.get(address, ()))[:room]
            if keys:
                slots[address] = frozenset(keys)
            taken.add(address)
            room -= max(1, len(keys))
        if not taken:
            return self
        return Wanted(self.accounts & taken, slots, codes_of=self.codes_of & taken)


def all_of(wants: Sequence[Wanted]) -> Wanted:
    """The keys of all; a code has the account that one of them knows."""
    slots: dict[bytes, set[int]] = {}
    codes: dict[bytes, bytes] = {}
    for each in wants:
        for address, keys in each.slots.items():
            slots.setdefault(address, set()).update(keys)
        for code, home in each.codes.items():
            codes[code] = codes.get(code) or home
    return Wanted(
        frozenset().union(*(each.accounts for each in wants)),
        {address: frozenset(keys) for address, keys in slots.items()},
        codes,
        frozenset().union(*(each.codes_of for each in wants)),
        frozenset().union(*(each.blocks for each in wants)),
    )


def wanted_of(misses: MissedKeys) -> Wanted:
    """What a run has missed, as it is asked for; slots that only old blocks have are not."""
    gone = misses.ended
    return Wanted(
        frozenset(misses.accounts),
        {at: frozenset(keys) for at, keys in misses.slots.items() if keys and at not in gone},
        dict(misses.codes),
        blocks=frozenset(misses.blocks),
    )


def only_missed(wanted: Wanted, missed: MissedKeys) -> Wanted:
    """These keys without the accounts and slots that are not missed."""
    of_slots = missed.slots
    left = {at: keys.intersection(of_slots.get(at, ())) for at, keys in wanted.slots.items()}
    return wanted._replace(
        accounts=wanted.accounts.intersection(missed.accounts),
        slots={address: keys for address, keys in left.items() if keys},
    )


def by_history(wanted: Wanted, at: int) -> Wanted:
    """The same, with block hashes as slots of the history contract in the state of block `at`.

    For chains that have the contract for longer than its window: there a slot is 0 for no block
    in it. Blocks outside of the window stay.
    """
    inside = frozenset(each for each in wanted.blocks if at - HISTORY_WINDOW <= each < at)
    if not inside:
        return wanted
    slots = frozenset(each % HISTORY_WINDOW for each in inside)
    rest = wanted._replace(blocks=wanted.blocks - inside)
    return rest.also(Wanted(slots={HISTORY_STORAGE: slots}))


class FoundAccount(NamedTuple):
    """An account as an endpoint gives it; the root is none where the endpoint did not say."""

    nonce: int
    balance: int
    code_hash: bytes
    storage_root: bytes | None

    @property
    def is_empty(self) -> bool:
        """Whether EIP-161 has no such account."""
        return self.nonce == 0 and self.balance == 0 and self.code_hash == EMPTY_CODE

    @property
    def believed(self) -> Account | None:
        """The account, if the endpoint is believed."""
        if self.is_empty:
            return None
        return Account(nonce=self.nonce, balance=self.balance, code_hash=self.code_hash)


class FoundSlotProof(NamedTuple):
    """One slot of a proof; the value is a claim until the nodes are checked."""

    slot: int
    value: int
    nodes: tuple[bytes, ...]


class FoundProof(NamedTuple):
    """An answer to eth_getProof; everything in it is a claim until the nodes are checked."""

    address: bytes
    account: FoundAccount
    nodes: tuple[bytes, ...]
    slots: tuple[FoundSlotProof, ...]
    source: str = ""  # the upstream that gave it, to be told if it is not true


class FoundHeader(NamedTuple):
    """A block whose header has this hash; whether it is an ancestor, the chain of parents says."""

    number: int
    hash: bytes
    parent_hash: bytes
    state_root: bytes


class Found:
    """Values by key; made by one reader and merged by another, then handed over."""

    __slots__ = ("accounts", "codes", "codes_of", "headers", "proofs", "said_by", "slots")

    def __init__(self) -> None:
        self.accounts: dict[bytes, FoundAccount] = {}
        self.slots: dict[bytes, dict[int, int]] = {}
        self.codes: dict[bytes, bytes] = {}  # by their hashes, which were computed here
        self.codes_of: dict[bytes, bytes] = {}  # hashes of codes by account
        self.headers: dict[int, FoundHeader] = {}
        self.proofs: dict[bytes, list[FoundProof]] = {}  # by account
        # By account, the upstream whose values are here without a proof, to be told if untrue.
        self.said_by: dict[bytes, str] = {}

    def put_proof(self, proof: FoundProof) -> None:
        """Take a proof, and the values that it claims."""
        self.proofs.setdefault(proof.address, []).append(proof)
        self.accounts[proof.address] = proof.account
        if proof.slots:
            self.put_slots(proof.address, ((each.slot, each.value) for each in proof.slots))

    def put_slots(self, address: bytes, values: Iterable[tuple[int, int]]) -> None:
        """Take values of slots."""
        self.slots.setdefault(address, {}).update(values)

    def put_code(self, address: bytes, code: bytes) -> bytes:
        """Take the code of an account; returns its hash."""
        code_hash = keccak256(code)
        self.codes[code_hash] = code
        self.codes_of[address] = code_hash
        return code_hash

    def put_codes(self, codes: Iterable[bytes]) -> None:
        """Take codes of no account in particular."""
        self.codes.update((keccak256(code), code) for code in codes)

    def merge(self, other: "Found") -> None:
        """Take all of another; what is here already stays."""
        self.accounts = {**other.accounts, **self.accounts}
        for address, values in other.slots.items():
            self.slots[address] = {**values, **self.slots.get(address, {})}
        self.codes = {**other.codes, **self.codes}
        self.codes_of = {**other.codes_of, **self.codes_of}
        self.headers = {**other.headers, **self.headers}
        self.said_by = {**other.said_by, **self.said_by}
        for address, proofs in other.proofs.items():
            self.proofs.setdefault(address, []).extend(proofs)

    def part(self, wanted: Wanted, more: frozenset[int] = _NONE) -> "Found":
        """What is here of these keys, with the proofs of their accounts.

        Of each of their accounts the slots `more` come along.
        """
        part = Found()
        for address in wanted.accounts | wanted.slots.keys():
            part._take_account(self, address, wanted.slots.get(address, _NONE) | more)
        part.codes = {code: self.codes[code] for code in wanted.codes if code in self.codes}
        for address in wanted.codes_of & self.codes_of.keys():
            part.put_code(address, self.codes[self.codes_of[address]])
        part.headers = {each: self.headers[each] for each in wanted.blocks & self.headers.keys()}
        return part

    def _take_account(self, other: "Found", address: bytes, slots: frozenset[int]) -> None:
        if address in other.accounts:
            self.accounts[address] = other.accounts[address]
        if address in other.said_by:
            self.said_by[address] = other.said_by[address]
        if address in other.proofs:
            self.proofs[address] = list(other.proofs[address])
        values = other.slots.get(address, {})
        if taken := {slot: values[slot] for slot in slots & values.keys()}:
            self.slots[address] = taken

    def missing(self, wanted: Wanted) -> Wanted:
        """The keys that have no value here."""
        slots = {
            address: keys - self.slots.get(address, {}).keys()
            for address, keys in wanted.slots.items()
        }
        return Wanted(
            wanted.accounts - self.accounts.keys(),
            {address: frozenset(keys) for address, keys in slots.items() if keys},
            {code: at for code, at in wanted.codes.items() if code not in self.codes},
            wanted.codes_of - self.codes_of.keys(),
            wanted.blocks - self.headers.keys(),
        )

    def __bool__(self) -> bool:
        return bool(self.accounts or self.slots or self.codes or self.codes_of or self.headers)
