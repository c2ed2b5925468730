"""Damaged chains: each is rejected at the right block, and nothing of that block is stored.

The named kinds run on the example chain and on a longer one; random bits are flipped in both.
"""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from conftest import ChainFiles
from foreblock._engine import Block, Header, decode_block, ommers_hash
from foreblock.errors import BadBlock, BadForkChoice, DifferentGenesis, ImportFailure
from foreblock.types import Withdrawal
from support.chains.importing import import_bytes, latest, refusing

FLIPS = 10 * settings().max_examples


@dataclass
class Blocks:
    """The blocks of a chain, to be damaged."""

    items: list[bytes]

    def block(self, number: int) -> Block:
        return decode_block(self.items[number - 1])[0]

    def replace(
        self,
        number: int,
        header: Callable[[Header], Header] = lambda header: header,
        **parts: Any,  # noqa: ANN401, the parts of a block
    ) -> None:
        """Change the header of a block, or its body."""
        block = self.block(number)
        whole = {
            "transactions": block.transactions,
            "uncles": block.uncles,
            "withdrawals": block.withdrawals,
        } | parts
        self.items[number - 1] = Block(header(block.header), **whole).encode()

    def set(self, number: int, /, **fields: Any) -> None:  # noqa: ANN401, header fields
        """Change fields of a header."""
        self.replace(number, lambda header: header.replace(**fields))


Damage = Callable[[Blocks], None]


def flip(data: bytes, bit: int) -> bytes:
    """Flip one bit."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def swap_blocks(blocks: Blocks) -> None:
    blocks.items[3], blocks.items[4] = blocks.items[4], blocks.items[3]


def drop_block(blocks: Blocks) -> None:
    del blocks.items[3]


def repeat_block(blocks: Blocks) -> None:
    blocks.items.insert(4, blocks.items[3])


def truncate(blocks: Blocks) -> None:
    blocks.items[-1] = blocks.items[-1][:-1]


def garbage_at_the_end(blocks: Blocks) -> None:
    blocks.items.append(b"\x00garbage")


def garbage_in_the_middle(blocks: Blocks) -> None:
    blocks.items.insert(6, b"garbage")


def list_that_is_no_block(blocks: Blocks) -> None:
    blocks.items.insert(6, b"\xc0")


def long_form_of_a_length(blocks: Blocks) -> None:
    """Encode the block's length in more bytes than necessary."""
    item = blocks.items[6]
    width = item[0] - 0xF7
    blocks.items[6] = bytes([item[0] + 1, 0]) + item[1 : 1 + width] + item[1 + width :]


def uncle_with(**fields: Any) -> Damage:  # noqa: ANN401, header fields
    """Change an uncle, and adapt the ommers hash."""

    def damage(blocks: Blocks) -> None:
        uncles = (blocks.block(3).uncles[0].replace(**fields),)
        blocks.replace(
            3, lambda header: header.replace(ommers_hash=ommers_hash(uncles)), uncles=uncles
        )

    return damage


def header(number: int, /, **fields: Any) -> Damage:  # noqa: ANN401, header fields
    return lambda blocks: blocks.set(number, **fields)


def add_to(number: int, field: str, by: int = 1) -> Damage:
    def damage(blocks: Blocks) -> None:
        blocks.set(number, **{field: getattr(blocks.block(number).header, field) + by})

    return damage


def no_uncles(blocks: Blocks) -> None:
    blocks.replace(3, uncles=())


def uncle_of_another_block(blocks: Blocks) -> None:
    blocks.replace(3, uncles=(blocks.block(2).header,))


# Every kind of damage for both chains: its name, the change, the block at which it is rejected, and
# the error. Both chains have an uncle in block 3.
KINDS: list[tuple[str, Damage, int, str]] = [
    ("parent hash", header(5, parent_hash=bytes(32)), 5, "parent hash: expected 0x"),
    ("number", add_to(5, "number"), 5, "number: expected 5, found 6"),
    ("time", header(5, timestamp=0), 5, "time: expected above the parent's"),
    ("gas limit too high", header(5, gas_limit=2**62), 5, "gas limit: expected"),
    ("gas limit too low", header(5, gas_limit=1), 5, "gas"),
    ("gas used", add_to(5, "gas_used"), 5, "gas used: expected"),
    ("difficulty", add_to(5, "difficulty"), 5, "difficulty: expected"),
    ("extra data", header(5, extra_data=bytes(33)), 5, "length of extra data: expected at most 32"),
    ("state root", header(5, state_root=bytes(32)), 5, "state root: expected 0x"),
    ("receipts root", header(5, receipts_root=bytes(32)), 5, "receipts root: expected 0x"),
    ("transactions root", header(5, transactions_root=bytes(32)), 5, "transactions root: expected"),
    ("logs bloom", header(5, logs_bloom=b"\1" * 256), 5, "logs bloom: expected 0x"),
    ("ommers hash", header(5, ommers_hash=bytes(32)), 5, "ommers hash: expected 0x"),
    ("uncle left out", no_uncles, 3, "ommers hash: expected"),
    ("uncle of another block", uncle_of_another_block, 3, "ommers hash: expected"),
    ("uncle's difficulty", uncle_with(difficulty=1), 3, "difficulty of uncle 0: expected"),
    ("uncle's parent", uncle_with(parent_hash=bytes(32)), 3, "parent hash of uncle 0: expected"),
    ("uncle's number", uncle_with(number=3), 3, "number of uncle 0: expected"),
    ("uncle's gas limit", uncle_with(gas_limit=5), 3, "gas limit of uncle 0: expected"),
    ("order of blocks", swap_blocks, 4, "number: expected 4, found 5"),
    ("missing block", drop_block, 4, "number: expected 4, found 5"),
    ("repeated block", repeat_block, 5, "number: expected 5, found 4"),
    ("garbage in the middle", garbage_in_the_middle, 7, "encoding: expected a block"),
    ("a list that is no block", list_that_is_no_block, 7, "encoding: expected a block"),
    ("a length in too many bytes", long_form_of_a_length, 7, "encoding: expected a block"),
]


def refusal(data: Path, files: ChainFiles, chain: bytes) -> ImportFailure:
    """Import a damaged chain with its fork choice, and return the reason of the rejection."""
    with refusing(ImportFailure) as caught:
        import_bytes(data, files.genesis.read_bytes(), chain, files.fork_choice.read_bytes())
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ImportFailure)
    return caught.value


def check(data: Path, files: ChainFiles, damage: Damage, number: int, text: str) -> None:
    blocks = Blocks(files.items())
    damage(blocks)
    failure = refusal(data, files, b"".join(blocks.items))
    assert isinstance(failure, BadBlock)
    assert failure.number == number
    assert str(failure).startswith(f"block {number}: {text}")
    assert latest(data) == number - 1


@pytest.mark.parametrize(("name", "damage", "number", "text"), KINDS, ids=[k[0] for k in KINDS])
def test_damage_is_refused_on_the_example_chain(
    name: str, damage: Damage, number: int, text: str, example: ChainFiles, tmp_path: Path
) -> None:
    del name
    check(tmp_path, example, damage, number, text)


@pytest.mark.parametrize(("name", "damage", "number", "text"), KINDS, ids=[k[0] for k in KINDS])
def test_damage_is_refused_on_the_long_chain(
    name: str, damage: Damage, number: int, text: str, long_chain: ChainFiles, tmp_path: Path
) -> None:
    del name
    check(tmp_path, long_chain, damage, number, text)


def swap_transactions(number: int) -> Damage:
    def damage(blocks: Blocks) -> None:
        first, second, *rest = blocks.block(number).transactions
        blocks.replace(number, transactions=(second, first, *rest))

    return damage


def byte_of_a_transaction(blocks: Blocks) -> None:
    first, *rest = blocks.block(2).transactions
    blocks.replace(2, transactions=(flip(first, 8 * 60), *rest))


def withdrawals(change: Callable[[Withdrawal], list[Withdrawal]]) -> Damage:
    def damage(blocks: Blocks) -> None:
        (paid,) = blocks.block(39).withdrawals or ()
        blocks.replace(39, withdrawals=change(paid))

    return damage


LATER_KINDS: list[tuple[str, Damage, int, str]] = [
    ("byte of a transaction", byte_of_a_transaction, 2, "transactions root: expected"),
    ("order of transactions", swap_transactions(2), 2, "transactions root: expected"),
    ("base fee", add_to(30, "base_fee_per_gas"), 30, "base fee: expected"),
    ("first base fee", add_to(27, "base_fee_per_gas"), 27, "base fee: expected 1000000000"),
    ("limit of the first London block", header(27, gas_limit=10**8), 27, "gas limit: expected"),
    ("difficulty after the merge", header(36, difficulty=1), 36, "difficulty: expected 0"),
    ("nonce after the merge", header(36, nonce=b"\1" * 8), 36, "nonce: expected"),
    ("withdrawal left out", withdrawals(lambda _: []), 39, "withdrawals root: expected"),
    (
        "amount of a withdrawal",
        withdrawals(lambda w: [(*w[:3], w[3] + 1)]),
        39,
        "withdrawals root: expected",
    ),
    ("withdrawals root", header(39, withdrawals_root=bytes(32)), 39, "withdrawals root: expected"),
    ("blob gas used", add_to(43, "blob_gas_used", 131_072), 43, "blob gas used: expected"),
    ("excess blob gas", add_to(43, "excess_blob_gas"), 43, "excess blob gas: expected 0"),
    (
        "parent beacon block root",
        header(43, parent_beacon_block_root=b"\1" * 32),
        43,
        "state root: expected",
    ),
    ("requests hash", header(45, requests_hash=bytes(32)), 45, "requests hash: expected"),
    (
        "a field of a later fork",
        header(54, block_access_list_hash=bytes(32), slot_number=1),
        54,
        "hash of the last block: expected",
    ),
    ("randomness of the head", header(54, mix_hash=b"\1" * 32), 54, "hash of the last block"),
    ("truncated file", truncate, 54, "encoding: expected a block in canonical RLP"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "damage", "number", "text"), LATER_KINDS, ids=[k[0] for k in LATER_KINDS]
)
def test_damage_to_later_forks_is_refused(
    name: str, damage: Damage, number: int, text: str, long_chain: ChainFiles, tmp_path: Path
) -> None:
    del name
    check(tmp_path, long_chain, damage, number, text)


def test_field_of_a_later_fork_is_refused_without_a_fork_choice(
    long_chain: ChainFiles, tmp_path: Path
) -> None:
    blocks = Blocks(long_chain.items())
    blocks.set(54, block_access_list_hash=bytes(32), slot_number=1)
    with refusing(BadBlock, match="block 54: block access list hash: expected none"):
        import_bytes(tmp_path, long_chain.genesis.read_bytes(), b"".join(blocks.items))
    assert latest(tmp_path) == 53


def test_garbage_after_the_head_is_refused_and_the_head_is_kept(
    example: ChainFiles, tmp_path: Path
) -> None:
    blocks = Blocks(example.items())
    garbage_at_the_end(blocks)
    failure = refusal(tmp_path, example, b"".join(blocks.items))
    assert str(failure) == (
        "block 13: encoding: expected a block in canonical RLP, "
        "found block: begins with 0x00, which begins no list"
    )
    assert latest(tmp_path) == 12


def test_field_that_only_the_next_block_binds_is_refused_there(
    example: ChainFiles, tmp_path: Path
) -> None:
    """Another mix hash makes another valid block; the block after it names the right one."""
    check(tmp_path, example, header(8, mix_hash=b"\1" * 32), 9, "parent hash: expected")


def test_chain_without_its_head_is_refused(example: ChainFiles, tmp_path: Path) -> None:
    chain = b"".join(example.items()[:-1])
    failure = refusal(tmp_path, example, chain)
    assert str(failure).startswith("block 11: hash of the last block: expected 0x")
    assert latest(tmp_path) == 10


def change_fork_choice(files: ChainFiles, **hashes: str) -> bytes:
    request = json.loads(files.fork_choice.read_bytes())
    request["params"][0].update(hashes)
    return json.dumps(request).encode()


def test_fork_choice_with_another_head_is_refused(example: ChainFiles, tmp_path: Path) -> None:
    choice = change_fork_choice(example, headBlockHash="0x" + "11" * 32)
    with refusing(BadBlock, match="block 12: hash of the last block: expected 0x1111"):
        import_bytes(tmp_path, example.genesis.read_bytes(), example.chain.read_bytes(), choice)
    assert latest(tmp_path) == 11


@pytest.mark.parametrize("key", ["safeBlockHash", "finalizedBlockHash"])
def test_fork_choice_with_an_unknown_block_is_refused(
    example: ChainFiles, tmp_path: Path, key: str
) -> None:
    choice = change_fork_choice(example, **{key: "0x" + "11" * 32})
    with refusing(BadForkChoice, match=f"{key}: no block of the chain has the hash 0x1111"):
        import_bytes(tmp_path, example.genesis.read_bytes(), example.chain.read_bytes(), choice)


def test_genesis_of_another_chain_is_refused(example: ChainFiles, tmp_path: Path) -> None:
    genesis = json.loads(example.genesis.read_bytes())
    genesis["alloc"]["0x" + "99" * 20] = {"balance": "1"}
    with refusing(BadBlock, match="block 1: parent hash: expected"):
        import_bytes(tmp_path, json.dumps(genesis).encode(), example.chain.read_bytes())
    assert latest(tmp_path) == 0
    with refusing(DifferentGenesis):
        import_bytes(tmp_path, example.genesis.read_bytes(), example.chain.read_bytes())


@dataclass(frozen=True)
class Flip:
    """One bit of the file, and its block."""

    bit: int
    number: int


def random_flips(items: list[bytes], count: int, seed: int) -> Iterator[Flip]:
    """Random bits of the file, uniformly distributed."""
    chance = random.Random(seed)
    ends = [0]
    for item in items:
        ends.append(ends[-1] + len(item))
    for _ in range(count):
        bit = chance.randrange(8 * ends[-1])
        yield Flip(bit, next(n for n, end in enumerate(ends) if bit // 8 < end))


@pytest.fixture(scope="session")
def stores_before_each_block(
    long_chain: ChainFiles, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Folders with the store before each block of the long chain."""
    folder = tmp_path_factory.mktemp("before")
    genesis, items = long_chain.genesis.read_bytes(), long_chain.items()
    import_bytes(folder / "growing", genesis, b"")
    for number, _ in enumerate(items, start=1):
        shutil.copytree(folder / "growing", folder / str(number))
        import_bytes(folder / "growing", genesis, b"".join(items[:number]))
    return folder


def check_flip(data: Path, files: ChainFiles, chain: bytes, flipped: Flip) -> None:
    """Check that a flip is rejected at its block, or at the next one if only that can detect it."""
    failure = refusal(data, files, flip(chain, flipped.bit))
    assert isinstance(failure, BadBlock), failure
    if failure.number != flipped.number:
        assert (failure.number, failure.what) == (flipped.number + 1, "parent hash")
    assert latest(data) == failure.number - 1


def test_random_bits_of_the_long_chain(
    long_chain: ChainFiles, stores_before_each_block: Path, tmp_path: Path
) -> None:
    """Each import continues from the block before the flipped one, which saves time."""
    chain = long_chain.chain.read_bytes()
    for count, flipped in enumerate(random_flips(long_chain.items(), FLIPS, seed=1)):
        data = tmp_path / str(count)
        shutil.copytree(stores_before_each_block / str(flipped.number), data)
        check_flip(data, long_chain, chain, flipped)
        shutil.rmtree(data)


def test_random_bits_of_the_example_chain_from_its_beginning(
    example: ChainFiles, tmp_path: Path
) -> None:
    chain = example.chain.read_bytes()
    for count, flipped in enumerate(random_flips(example.items(), FLIPS // 3, seed=2)):
        check_flip(tmp_path / str(count), example, chain, flipped)
