"""State roots from scratch: all accounts of a sealed block in a trie of plain Python."""

from collections.abc import Mapping

from foreblock._engine import State, keccak256
from foreblock.ledger.storage.chain_head import read_header
from support.chains.dev_chain import DevChain

MANY = 1 << 20
Rlp = bytes | list["Rlp"]


def rlp(item: Rlp) -> bytes:
    if isinstance(item, bytes):
        if len(item) == 1 and item[0] < 0x80:
            return item
        return _head(0x80, len(item)) + item
    body = b"".join(map(rlp, item))
    return _head(0xC0, len(body)) + body


def _head(first: int, length: int) -> bytes:
    if length < 56:
        return bytes((first + length,))
    size = length.to_bytes((length.bit_length() + 7) // 8)
    return bytes((first + 55 + len(size),)) + size


def trie_root(leaves: Mapping[bytes, bytes]) -> bytes:
    """The root of the trie of these keys, which are hashed, and values (yellow paper, D)."""
    pairs = sorted((_nibbles(keccak256(key)), value) for key, value in leaves.items())
    return keccak256(rlp(_node(pairs, 0)) if pairs else rlp(b""))


def _nibbles(key: bytes) -> tuple[int, ...]:
    return tuple(digit for byte in key for digit in (byte >> 4, byte & 15))


def _node(pairs: list[tuple[tuple[int, ...], bytes]], depth: int) -> Rlp:
    first, last = pairs[0][0], pairs[-1][0]
    if len(pairs) == 1:
        return [_path(first[depth:], leaf=True), pairs[0][1]]
    shared = depth
    while first[shared] == last[shared]:
        shared += 1
    if shared > depth:
        return [_path(first[depth:shared], leaf=False), _reference(_node(pairs, shared))]
    groups: list[list[tuple[tuple[int, ...], bytes]]] = [[] for _ in range(16)]
    for pair in pairs:
        groups[pair[0][depth]].append(pair)
    children = [_reference(_node(group, depth + 1)) if group else b"" for group in groups]
    return [*children, b""]


def _path(nibbles: tuple[int, ...], *, leaf: bool) -> bytes:
    flag = 2 * leaf + len(nibbles) % 2
    digits = (flag, *nibbles) if len(nibbles) % 2 else (flag, 0, *nibbles)
    return bytes(16 * a + b for a, b in zip(digits[::2], digits[1::2], strict=True))


def _reference(node: Rlp) -> Rlp:
    encoded = rlp(node)
    return node if len(encoded) < 32 else keccak256(encoded)


def state_root(state: State) -> bytes:
    """The root of a state, computed from its accounts and slots alone."""
    leaves = {}
    for address, account in state.accounts(None, MANY):
        slots = {
            slot.to_bytes(32): rlp(_number(value))
            for slot, value in state.slots(address, None, MANY)
        }
        code_hash = keccak256(state.code(address))
        fields: list[Rlp] = [_number(account.nonce), _number(account.balance)]
        leaves[address] = rlp([*fields, trie_root(slots), code_hash])
    return trie_root(leaves)


def _number(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 7) // 8)


def check_roots(chain: DevChain) -> None:
    """Check the state root of every sealed block."""
    with chain.store.view() as view:
        assert view.heads.latest is not None
        for number in range(view.heads.latest[0] + 1):
            header, _ = read_header(view, number)
            assert header.state_root == state_root(view.state(number)), f"block {number}"
