"""The claims of upstreams about keys, until they are proven or trusted. Values. No I/O.

A key that is not in a `FetchResult` is not known: no value is zero or absent because something
failed.

Proofs of blocks that are not executed here yet wait in `PendingProofs`: an upstream may be ahead,
or prove its tip only. At that block a key may have another value, so such a proof shows nothing by
itself. If its nodes fit a known block, it is rebased to that block. Otherwise it is kept until its
own block arrives: requesting it again would never end with a tip that moves on.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from foreblock.ledger.storage.open_store import FetchedState
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.types import Account, keccak256

EMPTY_CODE: Final = keccak256(b"")
_NO_SLOTS: Final[frozenset[int]] = frozenset()


class ClaimedAccount(NamedTuple):
    """An account as an endpoint returns it; the root is None if the response has none."""

    nonce: int
    balance: int
    code_hash: bytes
    storage_root: bytes | None

    @property
    def is_empty(self) -> bool:
        """Return True if EIP-161 has no such account."""
        return self.nonce == 0 and self.balance == 0 and self.code_hash == EMPTY_CODE

    @property
    def account(self) -> Account | None:
        """The account, as claimed."""
        if self.is_empty:
            return None
        return Account(nonce=self.nonce, balance=self.balance, code_hash=self.code_hash)


class ClaimedSlot(NamedTuple):
    """One slot of a proof; the value is a claim until the nodes are checked."""

    slot: int
    value: int
    nodes: tuple[bytes, ...]


class ClaimedProof(NamedTuple):
    """A response of eth_getProof; everything in it is a claim until the nodes are checked."""

    address: bytes
    account: ClaimedAccount
    nodes: tuple[bytes, ...]
    slots: tuple[ClaimedSlot, ...]
    source: str = ""  # its upstream, to be reported if it is wrong

    def slot_nodes(self) -> list[tuple[int, list[bytes]]]:
        """Return the slots, each with its nodes, as the engine takes them."""
        return [(each.slot, list(each.nodes)) for each in self.slots]

    def prove(self, root: bytes) -> tuple[Account | None, list[int]]:
        """Return the account and the slots that the nodes prove at a root. Raises `BadProof`."""
        learned = FetchedState(0, nodes=False)
        return learned.prove(root, self.address, list(self.nodes), self.slot_nodes())


class ClaimedHeader(NamedTuple):
    """A block whose header has this hash; the chain of parents shows whether it is an ancestor."""

    number: int
    hash: bytes
    parent_hash: bytes
    state_root: bytes


class FetchResult:
    """Values by key; made by one reader, merged by another, then passed on."""

    __slots__ = ("accounts", "codes", "codes_of", "headers", "proofs", "said_by", "slots")

    def __init__(self) -> None:
        self.accounts: dict[bytes, ClaimedAccount] = {}
        self.slots: dict[bytes, dict[int, int]] = {}
        self.codes: dict[bytes, bytes] = {}  # by their hashes, which were computed here
        self.codes_of: dict[bytes, bytes] = {}  # hashes of codes by account
        self.headers: dict[int, ClaimedHeader] = {}
        self.proofs: dict[bytes, list[ClaimedProof]] = {}  # by account
        # The upstream of values without a proof, by account: it is reported if they are not true.
        self.said_by: dict[bytes, str] = {}

    def put_proof(self, proof: ClaimedProof) -> None:
        """Add a proof and the values that it claims."""
        self.proofs.setdefault(proof.address, []).append(proof)
        self.accounts[proof.address] = proof.account
        if proof.slots:
            self.put_slots(proof.address, ((each.slot, each.value) for each in proof.slots))

    def put_slots(self, address: bytes, values: Iterable[tuple[int, int]]) -> None:
        """Add values of slots."""
        self.slots.setdefault(address, {}).update(values)

    def put_code(self, address: bytes, code: bytes) -> bytes:
        """Add the code of an account; return its hash."""
        code_hash = keccak256(code)
        self.codes[code_hash] = code
        self.codes_of[address] = code_hash
        return code_hash

    def put_codes(self, codes: Iterable[bytes]) -> None:
        """Add codes of no account in particular."""
        self.codes.update((keccak256(code), code) for code in codes)

    def merge(self, other: "FetchResult") -> None:
        """Add everything of another result; existing entries stay."""
        self.accounts = {**other.accounts, **self.accounts}
        for address, values in other.slots.items():
            self.slots[address] = {**values, **self.slots.get(address, {})}
        self.codes = {**other.codes, **self.codes}
        self.codes_of = {**other.codes_of, **self.codes_of}
        self.headers = {**other.headers, **self.headers}
        self.said_by = {**other.said_by, **self.said_by}
        for address, proofs in other.proofs.items():
            self.proofs.setdefault(address, []).extend(proofs)

    def part(self, wanted: StateKeys, more: frozenset[int] = _NO_SLOTS) -> "FetchResult":
        """Return the part about these keys, with the proofs and the slots `more` of their accounts.

        Of each of their accounts the slots `more` come along.
        """
        part = FetchResult()
        for address in wanted.accounts | wanted.slots.keys():
            part._take_account(self, address, wanted.slots.get(address, _NO_SLOTS) | more)
        part.codes = {code: self.codes[code] for code in wanted.codes if code in self.codes}
        for address in wanted.codes_of & self.codes_of.keys():
            part.put_code(address, self.codes[self.codes_of[address]])
        part.headers = {each: self.headers[each] for each in wanted.blocks & self.headers.keys()}
        return part

    def _take_account(self, other: "FetchResult", address: bytes, slots: frozenset[int]) -> None:
        if address in other.accounts:
            self.accounts[address] = other.accounts[address]
        if address in other.said_by:
            self.said_by[address] = other.said_by[address]
        if address in other.proofs:
            self.proofs[address] = list(other.proofs[address])
        values = other.slots.get(address, {})
        if taken := {slot: values[slot] for slot in slots & values.keys()}:
            self.slots[address] = taken

    def missing(self, wanted: StateKeys) -> StateKeys:
        """Return the keys that have no value here."""
        slots = {
            address: keys - self.slots.get(address, {}).keys()
            for address, keys in wanted.slots.items()
        }
        return StateKeys(
            wanted.accounts - self.accounts.keys(),
            {address: frozenset(keys) for address, keys in slots.items() if keys},
            {code: at for code, at in wanted.codes.items() if code not in self.codes},
            wanted.codes_of - self.codes_of.keys(),
            wanted.blocks - self.headers.keys(),
        )

    def __bool__(self) -> bool:
        return bool(self.accounts or self.slots or self.codes or self.codes_of or self.headers)


MOST_KEPT: Final = 2048  # proofs; the oldest are dropped
LONGEST_KEPT: Final = 8  # blocks; one that has not come by then is of another branch

Fit = Callable[[ClaimedProof], ClaimedProof | None]


class _WaitingProof(NamedTuple):
    root: bytes
    came: int  # when this block was the latest
    at: float  # and at this time, in seconds
    proof: ClaimedProof

    def is_about(self, wanted: StateKeys) -> bool:
        address = self.proof.address
        slots = wanted.slots.get(address, ())
        return address in wanted.accounts or any(each.slot in slots for each in self.proof.slots)


class PendingProofs:
    """Those of one epoch."""

    def __init__(self, fit: Fit | None = None) -> None:
        """`fit` returns a proof of the same keys at a known block, if the nodes allow it."""
        self._fit: Final = fit
        self._kept: Final[deque[_WaitingProof]] = deque(maxlen=MOST_KEPT)

    def take(self, proof: ClaimedProof, latest: int, now: float) -> ClaimedProof | None:
        """Return the proof rebased to a block that is here; None if it is kept instead.

        `latest` is the latest block here, `now` the time in seconds.
        """
        if not proof.nodes:
            return None
        fitted = self._fit(proof) if self._fit is not None else None
        if fitted is None:
            self._kept.append(_WaitingProof(keccak256(proof.nodes[0]), latest, now, proof))
        return fitted

    def ready_for(
        self, wanted: StateKeys, roots: Collection[bytes], latest: int
    ) -> Iterator[ClaimedProof]:
        """The proofs of these keys whose block is known now."""
        while self._kept and self._kept[0].came + LONGEST_KEPT < latest:
            self._kept.popleft()
        return (each.proof for each in self._kept if each.root in roots and each.is_about(wanted))

    def waited_for(self, roots: Collection[bytes], since: float) -> StateKeys:
        """The keys of newer proofs that wait for their block.

        Requesting them again would return the same proofs.
        """
        slots: dict[bytes, set[int]] = {}
        for each in self._kept:
            if each.at > since and each.root not in roots:
                known = slots.setdefault(each.proof.address, set())
                known.update(slot.slot for slot in each.proof.slots)
        accounts = frozenset(slots)
        keys = {address: frozenset(some) for address, some in slots.items() if some}
        return StateKeys(accounts, keys, codes_of=accounts)

    def has_pending(self, wanted: StateKeys, roots: Collection[bytes]) -> bool:
        """Return True if a proof of some of these keys waits for its block."""
        return any(each.root not in roots and each.is_about(wanted) for each in self._kept)
