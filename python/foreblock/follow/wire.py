"""Wanted and found state as bytes, between the workers of a network and its process. No I/O.

MessagePack has no integers of 256 bits, so that slots and balances are bytes without leading
zeros. What is unpacked equals what was packed.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from foreblock.errors import BusBroken
from foreblock.follow.keys import Found, FoundAccount, FoundProof, FoundSlotProof, Wanted


class StateAnswer(Struct, frozen=True):
    """What the network's process has found.

    `roots` are state roots of blocks that this chain has executed since its base: a proof is true
    if it leads to one of them. `blocks` are hashes of ancestors, verified by that process.
    """

    found: Found
    roots: tuple[bytes, ...]
    blocks: Mapping[int, bytes]


class _PackedWanted(Struct, frozen=True, array_like=True):
    accounts: list[bytes]
    slots: dict[bytes, list[bytes]]
    codes: dict[bytes, bytes]
    codes_of: list[bytes]
    blocks: list[int]


class _PackedAccount(Struct, frozen=True, array_like=True):
    nonce: int
    balance: bytes
    code_hash: bytes
    storage_root: bytes | None


class _PackedProof(Struct, frozen=True, array_like=True):
    address: bytes
    account: _PackedAccount
    nodes: list[int]  # places in the table of nodes
    slots: list[tuple[bytes, bytes, list[int]]]
    source: str


class _PackedAnswer(Struct, frozen=True, array_like=True):
    accounts: dict[bytes, _PackedAccount]
    slots: dict[bytes, list[tuple[bytes, bytes]]]
    codes: list[bytes]
    codes_of: dict[bytes, bytes]
    nodes: list[bytes]  # each once: proofs have their upper nodes in common
    proofs: list[_PackedProof]
    roots: list[bytes]
    blocks: dict[int, bytes]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode_wanted: Final = msgspec.msgpack.Decoder(_PackedWanted).decode
_decode_answer: Final = msgspec.msgpack.Decoder(_PackedAnswer).decode


def pack_wanted(wanted: Wanted) -> bytes:
    """Keys as bytes."""
    slots = {address: list(map(_packed, keys)) for address, keys in wanted.slots.items()}
    return _encode(
        _PackedWanted(
            list(wanted.accounts),
            slots,
            dict(wanted.codes),
            list(wanted.codes_of),
            list(wanted.blocks),
        )
    )


def unpack_wanted(data: bytes) -> Wanted:
    """Keys from bytes. Raises `BusBroken`."""
    try:
        packed = _decode_wanted(data)
    except msgspec.MsgspecError as why:
        raise BusBroken(str(why)) from None
    return Wanted(
        frozenset(packed.accounts),
        {at: frozenset(map(int.from_bytes, keys)) for at, keys in packed.slots.items()},
        packed.codes,
        frozenset(packed.codes_of),
        frozenset(packed.blocks),
    )


def pack_found(
    found: Found, roots: Sequence[bytes] = (), blocks: Mapping[int, bytes] | None = None
) -> bytes:
    """What was found as bytes; values that proofs have are not repeated."""
    places: dict[bytes, int] = {}
    proofs = [_packed_proof(each, places) for some in found.proofs.values() for each in some]
    slots = {
        address: [(_packed(slot), _packed(value)) for slot, value in values.items()]
        for address, values in _unproven(found).items()
    }
    accounts = {at: each for at, each in found.accounts.items() if at not in found.proofs}
    return _encode(
        _PackedAnswer(
            {at: _packed_account(each) for at, each in accounts.items()},
            slots,
            list(found.codes.values()),
            found.codes_of,
            list(places),
            proofs,
            list(roots),
            dict(blocks or {}),
        )
    )


def unpack_found(data: bytes) -> StateAnswer:
    """What was found, from bytes. Raises `BusBroken`."""
    try:
        packed = _decode_answer(data)
        return StateAnswer(_found(packed), tuple(packed.roots), packed.blocks)
    except (msgspec.MsgspecError, IndexError) as why:
        raise BusBroken(str(why)) from None


def _found(packed: _PackedAnswer) -> Found:
    found = Found()
    for proof in packed.proofs:
        found.put_proof(_proof(proof, packed.nodes))
    for address, account in packed.accounts.items():
        found.accounts[address] = _account(account)
    for address, values in packed.slots.items():
        pairs = ((int.from_bytes(slot), int.from_bytes(value)) for slot, value in values)
        found.put_slots(address, pairs)
    found.put_codes(packed.codes)
    found.codes_of = packed.codes_of
    return found


def _unproven(found: Found) -> dict[bytes, dict[int, int]]:
    """The slots that are in no proof."""
    left = {}
    for address, values in found.slots.items():
        proven = {each.slot for proof in found.proofs.get(address, ()) for each in proof.slots}
        if rest := {slot: value for slot, value in values.items() if slot not in proven}:
            left[address] = rest
    return left


def _packed_proof(proof: FoundProof, places: dict[bytes, int]) -> _PackedProof:
    def placed(nodes: Sequence[bytes]) -> list[int]:
        return [places.setdefault(node, len(places)) for node in nodes]

    slots = [(_packed(each.slot), _packed(each.value), placed(each.nodes)) for each in proof.slots]
    account = _packed_account(proof.account)
    return _PackedProof(proof.address, account, placed(proof.nodes), slots, proof.source)


def _proof(packed: _PackedProof, table: Sequence[bytes]) -> FoundProof:
    slots = tuple(
        FoundSlotProof(
            int.from_bytes(slot), int.from_bytes(value), tuple(table[at] for at in nodes)
        )
        for slot, value, nodes in packed.slots
    )
    nodes = tuple(table[at] for at in packed.nodes)
    return FoundProof(packed.address, _account(packed.account), nodes, slots, packed.source)


def _packed_account(account: FoundAccount) -> _PackedAccount:
    return _PackedAccount(
        account.nonce, _packed(account.balance), account.code_hash, account.storage_root
    )


def _account(packed: _PackedAccount) -> FoundAccount:
    balance = int.from_bytes(packed.balance)
    return FoundAccount(packed.nonce, balance, packed.code_hash, packed.storage_root)


def _packed(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8)
