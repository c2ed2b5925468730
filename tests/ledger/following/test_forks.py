"""Forks that activate by time in the middle of a followed feed.

Block 2 activates Isthmus, block 4 Jovian and block 6 Karst, each with its upgrade deposits in index
0, one of them with more gas than others may have, and nothing after it, as sequencers build such
blocks. Every block is sealed by a strict import on the sequencer's side, and header hashes are
recomputed here from the responses.
"""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from foreblock._engine import Transaction, deposit_transaction, keccak256
from foreblock.types import Flashblock
from support.chains.following import Built, Following, Truth, flat
from support.chains.profiles import JOVIAN
from support.chains.writing import HOLOCENE_DATA, JOVIAN_DATA, PASSER
from support.payloads.headers import header_hash
from support.servers.asking import asker

FORKING: dict[str, Any] = JOVIAN | {"isthmusTime": 4, "jovianTime": 8, "karstTime": 12}
ISTHMUS, JOVIAN_BLOCK, KARST, LAST = 2, 4, 6, 8
ACTIVATIONS = (ISTHMUS, JOVIAN_BLOCK, KARST)
PLAN = [[], [(0, 1), (1, 2)], [(2, 3)]]
ADD_POINTS = "0x" + "00" * 19 + "0b"  # EIP-2537, from Isthmus on
SOMEWHERE = "0x" + "c0" * 20
CLZ_OF_ONE = "0x60011e60005260206000f3"
# Reverts unless more than 2^24 gas remain, less the gas used before it runs.
NEEDS_MORE_THAN_THE_CAP = "0x62ffb0005a11600e5760006000fd5b00"
NO_WITHDRAWALS = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Truth]:
    truth = Truth(tmp_path / "truth", config=FORKING)
    yield truth
    truth.close()


@pytest.fixture
def following(tmp_path: Path) -> Iterator[Following]:
    following = Following(tmp_path / "followed", config=FORKING)
    yield following
    following.close()


def upgrade(block: int, place: int) -> Transaction:
    """A deposit that creates a contract, as in upgrades."""
    return deposit_transaction(
        source_hash=keccak256(bytes([block, place])),
        sender=bytes.fromhex("42100000000000000000000000000000000000") + bytes([place]),
        to=None,
        mint=0,
        value=0,
        gas_limit=2**24 + 1 if place == 0 else 500_000,
        input=bytes.fromhex("600a600c600039600a6000f3602a60005260206000f3"),
    )


def build(truth: Truth, blocks: int = LAST) -> list[Built]:
    """The chain, block by block; an activation block has one flashblock."""
    jobs = []
    for number in range(1, blocks + 1):
        activates = number in ACTIVATIONS
        upgrades = [upgrade(number, place) for place in range(3)] if activates else []
        jobs.append(truth.job(f"{number}", [[]] if activates else PLAN, upgrades=upgrades))
        truth.seal(jobs[-1])
    return jobs


def answered(following: Following, name: object = "pending") -> dict[str, Any]:
    with asker(following.ledger) as client:
        found: dict[str, Any] = client.ask("eth_getBlockByNumber", name, False)
    return found


def call_new_precompile(following: Following) -> Any:  # noqa: ANN401, JSON
    with asker(following.ledger) as client:
        return client.ask("eth_call", {"to": ADD_POINTS}, "pending")


def test_a_feed_is_followed_over_the_activation_of_forks(
    truth: Truth, following: Following
) -> None:
    for job in build(truth):
        for message in job.messages:
            following.hear(message)
            assert following.pending == (message.block_number, message.index)
            block = answered(following)
            assert block["hash"] == f"0x{message.diff.block_hash.hex()}" == header_hash(block)
    assert following.latest == LAST - 1
    assert following.counted("Diverged") == 0
    for number in range(1, LAST):
        block = answered(following, hex(number))
        assert block["hash"] == f"0x{truth.blocks[number].hash.hex()}" == header_hash(block)


def test_headers_have_the_fields_of_their_fork_on_both_sides(
    truth: Truth, following: Following
) -> None:
    jobs = build(truth)
    for job in jobs:
        following.hear(*job.messages)
        block, number = answered(following), job.number
        with truth.store.view() as view:
            passer = view.state(number).trie().storage_root(PASSER)
        is_isthmus, is_jovian = number >= ISTHMUS, number >= JOVIAN_BLOCK
        withdrawals = f"0x{passer.hex()}" if is_isthmus else NO_WITHDRAWALS
        assert block["withdrawalsRoot"] == withdrawals
        requests = f"0x{sha256().hexdigest()}" if is_isthmus else None
        assert block.get("requestsHash") == requests
        assert len(bytes.fromhex(block["extraData"][2:])) == (17 if is_jovian else 9)
        has_footprint = is_jovian and number not in ACTIVATIONS
        assert (int(block["blobGasUsed"], 16) > 0) == has_footprint


def test_calls_run_under_the_rules_of_the_block_they_name(
    truth: Truth, following: Following
) -> None:
    before, activating = build(truth, ISTHMUS)
    following.hear(*before.messages)
    assert call_new_precompile(following) == "0x", "an account like any other"
    following.hear(*activating.messages)
    assert following.pending == (ISTHMUS, 0)
    assert call_new_precompile(following)["code"] == -32000
    with asker(following.ledger) as client:
        pin = {"blockHash": f"0x{before.messages[-1].diff.block_hash.hex()}"}
        assert client.ask("eth_call", {"to": ADD_POINTS}, pin) == "0x"
        assert client.ask("eth_call", {"to": ADD_POINTS}, "latest") == "0x"


def test_karst_brings_what_osaka_executes(truth: Truth, following: Following) -> None:
    """CLZ, the price of P256VERIFY, and estimates below the limit of a transaction."""
    count_zeros = {"to": SOMEWHERE}, "pending", {SOMEWHERE: {"code": CLZ_OF_ONE}}
    verify = {"to": "0x" + "00" * 18 + "0100", "gas": hex(21_000 + 6_899)}, "pending"
    spend_all = {"to": SOMEWHERE}, "pending", {SOMEWHERE: {"code": NEEDS_MORE_THAN_THE_CAP}}
    *before, activating = build(truth, KARST)
    following.hear(*flat(before))
    with asker(following.ledger) as client:
        assert "opcode" in client.ask("eth_call", *count_zeros)["message"]
        assert client.ask("eth_call", *verify) == "0x"
        assert int(client.ask("eth_estimateGas", *spend_all), 16) > 2**24
    following.hear(*activating.messages)
    assert following.pending == (KARST, 0)
    with asker(following.ledger) as client:
        assert client.ask("eth_call", *count_zeros) == "0x" + "00" * 31 + "ff"
        assert client.ask("eth_call", *verify)["message"] == "out of gas"
        assert client.ask("eth_estimateGas", *spend_all)["code"] == -32000


def test_an_activation_block_of_one_flashblock_is_sealed_by_the_next(
    truth: Truth, following: Following
) -> None:
    before, activating, after = build(truth, ISTHMUS + 1)
    following.hear(*before.messages, *activating.messages)
    (only,) = activating.messages
    assert len(only.diff.transactions) == 4, "attributes, and three upgrades"
    following.expire()
    assert following.pending is None, "nothing more comes, so it is not fresh for ever"
    following.hear(*after.messages)
    assert following.sealed(ISTHMUS) == truth.blocks[ISTHMUS].hash
    assert following.pending == (ISTHMUS + 1, 2)


@pytest.mark.parametrize(
    ("number", "other", "expected"),
    [(JOVIAN_BLOCK - 1, JOVIAN_DATA, 9), (JOVIAN_BLOCK, HOLOCENE_DATA, 17)],
    ids=["early", "late"],
)
def test_a_block_in_the_form_of_the_other_side_is_refused(
    truth: Truth, following: Following, number: int, other: bytes, expected: int
) -> None:
    """A sequencer that activates early or too late builds another block."""
    *before, job = build(truth, number)
    following.hear(*flat(before))
    first = job.messages[0]
    assert first.base is not None
    wrong = replace(first.base, extra_data=other)
    assert unheard(following, replace(first, base=wrong, payload_id=bytes(8)))
    error = f"a: {number}.0: extra data: expected {expected} bytes, found 0x{other.hex()}"
    assert following.follower.last_error == error
    following.hear(*job.messages)
    assert following.pending == (number, len(job.messages) - 1)


def unheard(following: Following, message: Flashblock) -> bool:
    """Return whether a message is rejected without any change."""
    before, refused = following.pending, following.counted("Diverged")
    following.hear(message)
    return following.pending == before and following.counted("Diverged") == refused + 1


def test_sealed_blocks_around_an_activation_come_from_canonical_as_well(
    truth: Truth, following: Following
) -> None:
    jobs = build(truth)
    following.canonical(*(truth.blocks[number] for number in range(1, LAST)))
    assert following.latest == LAST - 1
    following.hear(*jobs[-1].messages)
    assert following.pending == (LAST, 2)
    assert header_hash(answered(following)) == answered(following)["hash"]
