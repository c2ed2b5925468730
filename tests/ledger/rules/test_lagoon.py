"""Blocks of Lagoon: the refunds of their sequencer, by a model of the fees.

The vectors follow specs.optimism.io (Lagoon, post-exec and sdm). The model knows transfers only:
it charges each for its gas after the refund, and shares no code with the engine; receipts and
roots are those of the checker.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from checker.keccak import keccak256
from checker.ordered_trie import OrderedTrie
from checker.receipts import receipt
from foreblock._engine import Block, Message, decode_transaction, sign_transaction
from foreblock.errors import BadBlock, Undecodable
from support.chains.builder import ChainBuilder
from support.chains.dev_chain import ACCOUNTS
from support.chains.importing import import_bytes, latest, refusing
from support.chains.profiles import JOVIAN
from support.each_case import each_case
from support.payloads import rlp

ETHER = 10**18
GWEI = 10**9
L1_BLOCK = bytes.fromhex("4200000000000000000000000000000000000015")
MESSAGE_PASSER = bytes.fromhex("4200000000000000000000000000000000000016")
BASE_FEE_VAULT = bytes.fromhex("4200000000000000000000000000000000000019")
OPERATOR_FEE_VAULT = bytes.fromhex("420000000000000000000000000000000000001b")
COINBASE = bytes.fromhex("4200000000000000000000000000000000000011")
PAID = b"\x35" * 20
SCALAR, CONSTANT = 3, 1_000_003  # of the operator fee
FOOTPRINT = 4  # of a byte
LAGOON = JOVIAN | {"karstTime": 0, "lagoonTime": 0}


def operator_fee(gas: int) -> int:
    """Jovian's formula (specs.optimism.io, Jovian, operator fee)."""
    return gas * SCALAR * 100 + CONSTANT


def post_exec(number: int, *refunds: tuple[int, int], version: int = 1) -> bytes:
    """The last transaction of a block."""
    entries = [rlp.encode([rlp.encode(index), rlp.encode(gas)]) for index, gas in refunds]
    fields = [rlp.encode(version), rlp.encode(number), rlp.encode(entries)]
    return b"\x7d" + rlp.encode(fields)


def deposit() -> bytes:
    fields: list[bytes | int] = [b"\1" * 32, b"\xd0" * 20, PAID, 0, 0, 50_000, 0, b""]
    return b"\x7e" + rlp.encode([rlp.encode(each) for each in fields])


def transfer(who: int, nonce: int, *, tip: int = GWEI, value: int = 1, gas: int = 21_000) -> bytes:
    message = Message(
        sender=ACCOUNTS[who].address,
        to=PAID,
        value=value,
        gas=gas,
        max_fee_per_gas=5 * GWEI,
        max_priority_fee_per_gas=tip,
    )
    return sign_transaction(message, 2, 901, nonce, ACCOUNTS[who].secret).raw


def genesis(balances: Sequence[int] = (100 * ETHER,) * 4, **config: int | None) -> bytes:
    alloc: dict[str, object] = {
        "0x" + ACCOUNTS[who].address.hex(): {"balance": str(balance)}
        for who, balance in enumerate(balances)
    }
    fees = CONSTANT | SCALAR << 64 | FOOTPRINT << 96
    alloc["0x" + L1_BLOCK.hex()] = {"balance": "0", "nonce": "0x1", "storage": {"0x8": hex(fees)}}
    alloc["0x" + MESSAGE_PASSER.hex()] = {"balance": "0", "nonce": "0x1"}
    document = {
        "config": {key: at for key, at in (LAGOON | config).items() if at is not None},
        "gasLimit": "0x1c9c380",
        "difficulty": "0x0",
        "baseFeePerGas": hex(GWEI),
        "extraData": "0x0100000032000000060000000000000000",
        "alloc": alloc,
    }
    return json.dumps(document).encode()


@pytest.fixture
def chain(tmp_path: Path) -> ChainBuilder:
    return ChainBuilder(tmp_path / "built", genesis())


def balances(chain: ChainBuilder, *addresses: bytes) -> list[int]:
    with chain.store.view() as view:
        state = view.state(chain.tip.header.number)
        return [state.balance(each) for each in addresses]


def test_the_encoding_is_that_of_the_specification() -> None:
    """0x7D ‖ rlp([version, blockNumber, [[index, gasRefund], …]]), hashed with its type."""
    raw = bytes.fromhex("7dcc0182012cc7c20105c30281c8")
    assert raw == post_exec(300, (1, 5), (2, 200))
    found = decode_transaction(raw)
    assert found.hash == keccak256(raw)
    assert (found.type, found.sender, found.to) == (0x7D, bytes(20), None)
    assert (found.gas_limit, found.value, found.input) == (0, 0, raw[1:])
    assert found.post_exec == (1, 300, [(1, 5), (2, 200)])


ENTRY = rlp.encode([rlp.encode(1), rlp.encode(5)])


@each_case(
    "fields",
    [
        [],
        [rlp.encode(1)],
        [rlp.encode(1), rlp.encode(7)],  # no entries
        [rlp.encode(1), rlp.encode(7), rlp.encode([ENTRY]), rlp.encode(0)],
        [rlp.encode(1), rlp.encode(7), rlp.encode(b"")],
        [rlp.encode(1), rlp.encode(7), rlp.encode([rlp.encode([rlp.encode(1)])])],
        [rlp.encode(1), rlp.encode(7), rlp.encode([rlp.encode([rlp.encode(1)] * 3)])],
        [rlp.encode(1), b"\x82\0\7", rlp.encode([ENTRY])],  # a zero before the number
        [rlp.encode(1), rlp.encode(1 << 64), rlp.encode([ENTRY])],
        [rlp.encode(256), rlp.encode(7), rlp.encode([ENTRY])],
    ],
)
def test_other_encodings_are_refused(fields: list[bytes]) -> None:
    with pytest.raises(Undecodable):
        decode_transaction(b"\x7d" + rlp.encode(fields))


def test_there_is_nothing_after_its_list() -> None:
    for raw in (b"\x7d", post_exec(7, (1, 5)) + b"\0", b"\x7d\1"):
        with pytest.raises(Undecodable):
            decode_transaction(raw)


def test_random_refunds_have_the_effect_of_the_model(chain: ChainBuilder, tmp_path: Path) -> None:
    rng = random.Random(11)
    senders = [ACCOUNTS[who].address for who in range(4)]
    model = dict.fromkeys([PAID, COINBASE, BASE_FEE_VAULT, OPERATOR_FEE_VAULT], 0)
    model |= dict.fromkeys(senders, 100 * ETHER)
    nonces = [0] * 4
    refunds_seen = 0
    for number in range(1, 9):
        tips, raws = [], [deposit()]
        for _ in range(rng.randrange(1, 7)):
            who, tip = rng.randrange(4), rng.choice([0, 1, GWEI])
            raws.append(transfer(who, nonces[who], tip=tip, value=rng.randrange(9)))
            nonces[who] += 1
            tips.append((who, tip))
        refunds = {
            place: rng.choice([1, rng.randrange(1, 21_000), 21_000])
            for place in range(1, len(raws))
            if rng.random() < 0.6
        }
        refunds_seen += len(refunds)
        if refunds:
            raws.append(post_exec(number, *refunds.items()))
        block = chain.add(raws, beneficiary=COINBASE)
        base_fee = block.header.base_fee_per_gas
        assert base_fee is not None
        gas, receipts = 21_000, [receipt(0x7E, 21_000, deposit_nonce=number - 1)]
        for place, (who, tip) in enumerate(tips, 1):
            charged = 21_000 - refunds.get(place, 0)
            value = decode_transaction(raws[place]).value
            model[senders[who]] -= value + charged * (base_fee + tip) + operator_fee(charged)
            model[PAID] += value
            model[COINBASE] += charged * tip
            model[BASE_FEE_VAULT] += charged * base_fee
            model[OPERATOR_FEE_VAULT] += operator_fee(charged)
            gas += charged
            receipts.append(receipt(2, gas))
        if refunds:
            receipts.append(receipt(0x7D, gas))
        assert balances(chain, *model) == list(model.values())
        assert block.header.gas_used == gas
        assert block.header.blob_gas_used == 100 * FOOTPRINT * len(tips)
        assert block.header.receipts_root == root(receipts)
        assert block.header.transactions_root == root(raws)
    assert refunds_seen > 10
    blocks = b"".join(each.encode() for each in chain.blocks)
    assert import_bytes(tmp_path / "store", genesis(), blocks).blocks == 8


def root(items: Sequence[bytes]) -> bytes:
    trie = OrderedTrie()
    trie.extend(items)
    return trie.root()


def test_a_refund_pays_for_the_next_transaction(tmp_path: Path) -> None:
    """It is settled with its transaction, so the sender has it in the next one."""
    paid = 21_000 * 5 * GWEI + operator_fee(21_000) + 1
    chain = ChainBuilder(tmp_path / "built", genesis([2 * paid - 1_000]))
    both = [transfer(0, 0, tip=4 * GWEI), transfer(0, 1, tip=4 * GWEI)]
    with refusing(BadBlock, match="transaction 1: expected one that is valid here"):
        chain.build(both, base_fee_per_gas=GWEI)
    chain.build([*both, post_exec(1, (0, 1))], base_fee_per_gas=GWEI)


def test_refunds_let_no_more_gas_into_a_block(chain: ChainBuilder) -> None:
    """The gas of execution counts against the limit, as in the reference implementation."""
    three = [transfer(who, 0) for who in range(3)]
    with refusing(BadBlock, match="gas limit 21000 above the block's rest of 20999"):
        chain.build([*three, post_exec(1, (0, 21_000), (1, 21_000))], gas_limit=62_999)


N = 1
ONE = (1, 5)


@each_case(
    ("end", "why"),
    [
        ([post_exec(N, ONE), post_exec(N, ONE)], "post-execution transaction: expected at the end"),
        ([post_exec(N, ONE), transfer(3, 0)], "post-execution transaction: expected at the end"),
        ([post_exec(N + 1, ONE)], "post-execution block number: expected 1, found 2"),
        ([post_exec(N - 1, ONE)], "post-execution block number: expected 1, found 0"),
        ([post_exec(N, ONE, version=2)], "post-execution version: expected 1, found 2"),
        ([post_exec(N, ONE, version=0)], "post-execution version: expected 1, found 0"),
        ([post_exec(N)], "refunds: expected one at least, found none"),
        ([post_exec(N, (1, 0))], "refund of transaction 1: expected more than 0, found 0"),
        ([post_exec(N, (2, 1), (1, 1))], "index of a refund: expected above 2, found 1"),
        ([post_exec(N, (1, 1), (1, 1))], "index of a refund: expected above 1, found 1"),
        ([post_exec(N, (0, 1))], "index of a refund: expected that of a transaction with fees"),
        ([post_exec(N, (3, 1))], "index of a refund: expected that of a transaction with fees"),
        ([post_exec(N, (4, 1))], "index of a refund: expected that of a transaction with fees"),
        ([post_exec(N, (1, 21_001))], "transaction 1: .* a refund of 21001 gas, above its 21000"),
    ],
)
def test_blocks_with_another_end_are_refused(end: list[bytes], why: str) -> None:
    body = [deposit(), transfer(0, 0), transfer(1, 0)]
    with TemporaryDirectory() as folder:
        chain = ChainBuilder(Path(folder), genesis())
        with refusing(BadBlock, match=f"block 1: {why}"):
            chain.build([*body, *end])


def test_there_is_none_before_lagoon(tmp_path: Path) -> None:
    """The block before the fork may not have one, the first block of the fork may."""
    document = genesis(lagoonTime=20)
    chain = ChainBuilder(tmp_path / "built", document)
    with refusing(BadBlock, match="post-execution transaction: expected none before Lagoon"):
        chain.build([deposit(), transfer(0, 0), post_exec(1, ONE)])
    chain.add([deposit()])
    chain.add([deposit(), transfer(0, 0), post_exec(2, ONE)])
    blocks = b"".join(each.encode() for each in chain.blocks)
    assert import_bytes(tmp_path / "store", document, blocks).blocks == 2


def test_a_replayed_one_is_refused_by_an_import(chain: ChainBuilder, tmp_path: Path) -> None:
    """A block that commits to everything in it, but for the number in its last transaction."""
    good = chain.add([deposit(), transfer(0, 0), post_exec(1, ONE)])
    body = [deposit(), transfer(0, 1), post_exec(2, ONE)]
    valid = chain.build(body)
    replayed = [*body[:-1], post_exec(1, ONE)]
    bad = Block(valid.header.replace(transactions_root=root(replayed)), replayed, (), ())
    with refusing(BadBlock, match="block 2: post-execution block number: expected 2, found 1"):
        import_bytes(tmp_path / "store", genesis(), good.encode() + bad.encode())
    assert latest(tmp_path / "store") == 1
