"""State of a partial base in a worker: values from the writer, and trie nodes from upstreams.

The writer has proven the values, or the operator trusts upstreams; workers on the same machine use
them as they are. As bytes they are MessagePack, which has no integers of 256 bits: slots and
balances are bytes without leading zeros.

A worker accepts a value if its key is unknown in a view that was opened after the value came from a
block which that view has: then no block has changed the key, and the value is that of the base,
for old views and new ones. A key that is known there is not accepted: the store has it. Slots of an
account that was deleted since are known at the latest block, as zeros; they are accepted from a
proof of an earlier block, if they are unknown at that one.

The writer stores the same values. When the values here exceed their bound, they are cleared.

Trie nodes for roots and proofs are fetched by `TrieNodeFetcher` and verified here.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from foreblock.errors import (
    BadProof,
    BusBroken,
    InvalidProofData,
    MissingTrieNodes,
    NotHere,
    NoUpstream,
    RefusedAnswer,
    TooMuchState,
)
from foreblock.follow.fetch_result import ClaimedProof, FetchResult
from foreblock.follow.requests import BlockAt, BlockForm, GetProof
from foreblock.follow.responses import read_proof
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.storage.open_store import FetchedState
from foreblock.ledger.storage.state_keys import StateKeys, packed_int
from foreblock.types import Account, MissingKeys
from foreblock.upstream.old_blocks import AskUpstream

LIMIT: Final = 64 << 20  # bytes


class KnownValues(NamedTuple):
    """Values that are proven, or trusted; `blocks` are hashes of blocks before the base."""

    accounts: Mapping[bytes, Account | None]
    slots: Mapping[bytes, Mapping[int, int]]
    codes: Sequence[bytes] = ()
    blocks: Mapping[int, bytes] = {}

    def also(self, other: "KnownValues") -> "KnownValues":
        """The values of both."""
        slots = {
            address: {**self.slots.get(address, {}), **other.slots.get(address, {})}
            for address in (*self.slots, *other.slots)
        }
        return KnownValues(
            {**self.accounts, **other.accounts},
            slots,
            [*self.codes, *other.codes],
            {**self.blocks, **other.blocks},
        )

    def has(self, wanted: StateKeys) -> bool:
        """Return True if it has these accounts and slots."""
        return wanted.accounts <= self.accounts.keys() and all(
            slots <= self.slots.get(address, {}).keys() for address, slots in wanted.slots.items()
        )

    def part(self, wanted: StateKeys) -> "KnownValues":
        """The wanted accounts and slots, and all codes."""
        return KnownValues(
            {address: self.accounts[address] for address in wanted.accounts},
            {
                address: {slot: self.slots[address][slot] for slot in slots}
                for address, slots in wanted.slots.items()
            },
            self.codes,
        )


def learn_values(learned: FetchedState, values: KnownValues) -> None:
    """Learn values of a base; those of known keys are ignored."""
    for address, account in values.accounts.items():
        learned.put_account(address, account)
    for address, slots in values.slots.items():
        learned.put_slots(address, slots)
    for code in values.codes:
        learned.put_code(code)
    for number, block_hash in values.blocks.items():
        learned.put_block(number, block_hash)


class LearnedState:
    """Values beside the store of one ledger; they belong to one epoch of its base."""

    def __init__(
        self, ledger: Ledger, limit: int = LIMIT, shared: FetchedState | None = None
    ) -> None:
        """`shared` are the values of a writer in this process, which knows all of them."""
        self._ledger: Final = ledger
        self._limit: Final = limit
        self._shared: Final = shared
        self._learned: FetchedState | None = None

    @property
    def size(self) -> int:
        """About how many bytes it uses."""
        return 0 if self._learned is None else self._learned.size

    def learn(self, view: LedgerView, values: KnownValues, at: ReadableBlock | None = None) -> None:
        """Accept values that are unknown in this view, whose blocks they come from.

        Values of the block `at` are accepted if they are unknown there.
        """
        learned = self._of_epoch(view.base.epoch)
        slots = {address: list(keys) for address, keys in values.slots.items()}
        missing = view.state(at or view.latest).missing(list(values.accounts), slots)
        for address in missing.accounts:
            if address in values.accounts:
                learned.put_account(address, values.accounts[address])
        for address, unknown in missing.slots.items():
            known = values.slots.get(address, {})
            taken = {slot: known[slot] for slot in unknown if slot in known}
            learned.put_slots(address, taken)
        for code in values.codes:
            learned.put_code(code)
        for number, block_hash in values.blocks.items():
            learned.put_block(number, block_hash)

    def put_nodes(self, view: LedgerView, nodes: Sequence[bytes]) -> None:
        """Add trie nodes; they are valid for every block."""
        self._of_epoch(view.base.epoch).put_nodes(nodes)

    def _of_epoch(self, epoch: int) -> FetchedState:
        if self._shared is not None:
            return self._shared
        learned = self._learned
        if learned is None or learned.epoch != epoch or learned.size > self._limit:
            learned = self._learned = FetchedState(epoch, limit=2 * self._limit, nodes=False)
            self._ledger.set_fallback_state(learned)
        return learned


class _Packed(Struct, frozen=True, array_like=True):
    accounts: dict[bytes, tuple[int, bytes, bytes] | None]  # nonce, balance, hash of the code
    slots: dict[bytes, list[tuple[bytes, bytes]]]
    codes: list[bytes]
    blocks: dict[int, bytes]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Packed).decode


def pack_values(result: FetchResult, blocks: Mapping[int, bytes]) -> bytes:
    """Return the values of a result, and hashes of blocks before the base, as bytes."""
    return pack_known(known_values(result, blocks))


def known_values(result: FetchResult, blocks: Mapping[int, bytes]) -> KnownValues:
    """Return the values of a result, and hashes of blocks before the base."""
    accounts = {address: claim.account for address, claim in result.accounts.items()}
    return KnownValues(accounts, result.slots, list(result.codes.values()), blocks)


def pack_known(known: KnownValues) -> bytes:
    """Return values as bytes."""
    return _encode(
        _Packed(
            {
                address: each and (each.nonce, packed_int(each.balance), each.code_hash)
                for address, each in known.accounts.items()
            },
            {
                address: [(packed_int(slot), packed_int(value)) for slot, value in values.items()]
                for address, values in known.slots.items()
            },
            list(known.codes),
            dict(known.blocks),
        )
    )


def unpack_values(data: bytes) -> KnownValues:
    """Return the values in these bytes. Raises `BusBroken`."""
    try:
        packed = _decode(data)
        return KnownValues(
            {
                address: each
                and Account(nonce=each[0], balance=int.from_bytes(each[1]), code_hash=each[2])
                for address, each in packed.accounts.items()
            },
            {
                address: {int.from_bytes(slot): int.from_bytes(value) for slot, value in values}
                for address, values in packed.slots.items()
            },
            packed.codes,
            packed.blocks,
        )
    except (msgspec.MsgspecError, ValueError, OverflowError) as why:
        raise BusBroken(str(why)) from None


MOST_PATHS: Final = 64  # accounts of one round; each is a request
AT_ONCE: Final = 16

Keys = dict[bytes, set[int]]
KeysAt = Mapping[int, Keys]  # by the number of the block at which they are requested


class TrieNodeFetcher:
    """Requests trie nodes from the upstreams of one network."""

    def __init__(self, ledger: Ledger, learned: LearnedState, ask: AskUpstream) -> None:
        self._ledger: Final = ledger
        self._learned: Final = learned
        self._ask: Final = ask
        self._free: Final = asyncio.Semaphore(AT_ONCE)

    async def fetch(self, missing: Iterable[MissingTrieNodes], seconds: float) -> None:
        """Fetch the nodes on these paths.

        Raises `EndpointError`, `TooMuchState`, `TimeoutError`.
        """
        keys: dict[int, Keys] = {}
        for each in missing:
            of_block, slots = keys.setdefault(each.block, {}), each.misses.slots
            for address in each.misses.accounts:
                of_block.setdefault(address, set()).update(slots.get(address, ()))
        nodes: list[bytes] = []
        for _, proof in await self._proofs(keys, seconds):
            nodes += [*proof.nodes, *(node for each in proof.slots for node in each.nodes)]
        with closing(self._ledger.view()) as view:
            self._learned.put_nodes(view, nodes)

    async def fetch_slots(self, keys: KeysAt, seconds: float) -> None:
        """Learn slots by proofs at these blocks. Raises as `fetch`, and `InvalidProofData`."""
        for at_block, proof in await self._proofs(keys, seconds):
            with closing(self._ledger.view()) as view:
                block = view.resolve(at_block.number)
                self._learned.learn(view, _proven(proof, block.header.state_root), at=block)

    async def _proofs(self, keys: KeysAt, seconds: float) -> list[tuple[BlockAt, ClaimedProof]]:
        if sum(map(len, keys.values())) > MOST_PATHS:
            raise TooMuchState(f"the trie nodes of more than {MOST_PATHS} accounts")
        fetches = [
            self._proof(at_block, GetProof(address, tuple(sorted(slots))))
            for number, of_block in keys.items()
            if (at_block := self._block_at(number)) is not None
            for address, slots in of_block.items()
        ]
        async with asyncio.timeout(seconds):
            return await asyncio.gather(*fetches)

    def _block_at(self, number: int) -> BlockAt | None:
        """The block to request at; None if the chain was replaced since."""
        with closing(self._ledger.view()) as view:
            try:
                block = view.resolve(number)
            except NotHere:
                return None
            return BlockAt(number, block.hash)

    async def _proof(self, at_block: BlockAt, request: GetProof) -> tuple[BlockAt, ClaimedProof]:
        async with self._free:
            return at_block, await proof_at(self._ask, request, at_block)


def slots_before(missed: Sequence[MissingKeys]) -> KeysAt:
    """The slots of accounts that were deleted since, by the last blocks that had them."""
    keys: dict[int, Keys] = {}
    for each in missed:
        slots = each.slots
        for address, number in each.destroyed_after.items():
            of_block = keys.setdefault(number, {})
            of_block.setdefault(address, set()).update(slots.get(address, ()))
    return keys


def _proven(proof: ClaimedProof, root: bytes) -> KnownValues:
    """Return the values that a proof proves. Raises `InvalidProofData`."""
    try:
        account, values = proof.prove(root)
    except BadProof as why:
        raise InvalidProofData(str(why)) from None
    slots = (each.slot for each in proof.slots)
    return KnownValues(
        {proof.address: account}, {proof.address: dict(zip(slots, values, strict=True))}
    )


async def proof_at(ask: AskUpstream, request: GetProof, block: BlockAt) -> ClaimedProof:
    """Return an unchecked proof at a block. Raises `InvalidProofData`, `NoUpstream`."""
    try:
        params = request.params(block.parameter(BlockForm.HASH))
        text = await ask(request.method, msgspec.json.encode(params))
    except NoUpstream:  # some take numbers only
        params = request.params(block.parameter(BlockForm.NUMBER))
        text = await ask(request.method, msgspec.json.encode(params))
    try:
        return read_proof(request, Raw(text))
    except RefusedAnswer as why:
        raise InvalidProofData(str(why)) from None
