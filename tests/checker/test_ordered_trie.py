"""The product's roots are alloy's: an independent implementation."""

import random

from checker.keccak import keccak256
from checker.ordered_trie import EMPTY_ROOT, OrderedTrie, ordered_root
from foreblock._engine import withdrawals_root
from foreblock.types import Withdrawal
from support.payloads import rlp


def withdrawal(number: int) -> Withdrawal:
    return (number, number * 7, bytes([number % 251]) * 20, number * 1_000)


def encoded(value: Withdrawal) -> bytes:
    return rlp.encode([rlp.encode(item) for item in value])


def test_the_root_of_nothing() -> None:
    """As in every header of an empty block."""
    expected = "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
    assert ordered_root([]).hex() == EMPTY_ROOT.hex() == expected


def test_a_list_has_its_root_at_every_length() -> None:
    """Across 127, 128, 255 and 256, where the form of keys changes."""
    trie, values = OrderedTrie(), [withdrawal(number) for number in range(300)]
    grown = random.Random(7)
    length = 0
    while length < len(values):
        portion = values[length : length + grown.randrange(1, 12)]
        trie.extend(map(encoded, portion))
        length += len(portion)
        assert trie.root() == withdrawals_root(values[:length]), length
        assert trie.root() == trie.root()


def test_nodes_shorter_than_a_hash_stand_in_their_parents() -> None:
    """Computed by hand: two leaves of one nibble and one byte, in a branch below an extension."""
    leaf = [rlp.encode(b"\x20"), rlp.encode(b"a")]
    branch = rlp.encode([rlp.encode(b"")] + [rlp.encode(leaf)] * 2 + [rlp.encode(b"")] * 14)
    trie = OrderedTrie()
    trie.extend([b"b", b"a", b"a"])
    top = [rlp.encode(b"")] * 17
    top[0] = branch
    top[8] = rlp.encode([rlp.encode(b"\x30"), rlp.encode(b"b")])
    assert trie.root() == keccak256(rlp.encode(top))
