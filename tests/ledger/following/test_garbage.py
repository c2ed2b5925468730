"""Nonsense messages among valid ones: counted, bounded, and survived."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foreblock.ledger.following.buffer import BufferBounds
from foreblock.types import Flashblock, FlashblockId
from support.chains.following import Built, Following, Truth

PLAN = [[], [(0, 1), (1, 2)], [(2, 3)], [(1, 5)]]
BLOCKS = 6
FIELDS = (
    "state_root", "receipts_root", "logs_bloom", "gas_used", "block_hash", "withdrawals_root",
    "blob_gas_used",
)  # fmt: skip
BASE_FIELDS = (
    "parent_hash", "prev_randao", "fee_recipient", "gas_limit", "timestamp", "extra_data",
    "base_fee_per_gas", "parent_beacon_block_root",
)  # fmt: skip

Mutation = Callable[[Flashblock, random.Random], Flashblock]


def other(value: Any, chance: random.Random) -> Any:  # noqa: ANN401, fields of any type
    """Another value of the same type."""
    if isinstance(value, bytes):
        return chance.randbytes(len(value))
    return chance.choice([0, 1, value + 1, max(value - 1, 0), 2**63, 2**64 - 1])


def in_diff(message: Flashblock, chance: random.Random) -> Flashblock:
    field = chance.choice(FIELDS)
    return replace(
        message,
        diff=replace(message.diff, **{field: other(getattr(message.diff, field), chance)}),
    )


def in_transactions(message: Flashblock, chance: random.Random) -> Flashblock:
    raws = list(message.diff.transactions) or [b"\x02"]
    at = chance.randrange(len(raws))
    match chance.randrange(5):
        case 0:
            raws[at] = chance.randbytes(chance.randrange(1, 200))
        case 1:
            raws[at] = raws[at][: chance.randrange(1, len(raws[at]) + 1)]
        case 2:
            raws.append(raws[at])
        case 3:
            del raws[at]
        case _:
            raws[at] = bytes([chance.randrange(256)]) + raws[at][1:]
    return replace(message, diff=replace(message.diff, transactions=tuple(raws)))


def in_base(message: Flashblock, chance: random.Random) -> Flashblock:
    if message.base is None:
        return message
    field = chance.choice(BASE_FIELDS)
    return replace(
        message,
        base=replace(message.base, **{field: other(getattr(message.base, field), chance)}),
    )


def in_place(message: Flashblock, chance: random.Random) -> Flashblock:
    match chance.randrange(5):
        case 0:
            return replace(message, payload_id=chance.randbytes(8))
        case 1:
            return replace(message, index=chance.choice([0, 1, 2, 7, 1023, 1024, 2**64 - 1]))
        case 2:
            number = chance.choice([0, 1, message.block_number + 1, 2**64 - 1])
            return replace(message, block_number=number)
        case 3:
            number = message.block_number + chance.choice([-1, 1])
            base = message.base and replace(message.base, block_number=number)
            return replace(message, block_number=number, base=base)
        case _:
            return replace(message, previous=FlashblockId(chance.randrange(9), chance.randrange(9)))


MUTATIONS: tuple[Mutation, ...] = (in_diff, in_transactions, in_base, in_place)


def mutated(message: Flashblock, chance: random.Random) -> Flashblock:
    for _ in range(chance.choice([1, 1, 2, 3])):
        message = chance.choice(MUTATIONS)(message, chance)
    return message


def sealed_jobs(truth: Truth) -> list[Built]:
    jobs = []
    for number in range(1, BLOCKS + 1):
        jobs.append(truth.job(f"{number}p", PLAN))
        truth.seal(jobs[-1])
    return jobs


@pytest.mark.parametrize("seed", range(8))
def test_true_messages_are_followed_among_mutated_ones(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    truth, following = Truth(tmp_path / "truth"), Following(tmp_path / "followed")
    for job in sealed_jobs(truth):
        for message in job.messages:
            for _ in range(chance.randrange(4)):
                following.receive(mutated(message, chance), feed="b")
            following.receive(message)
            if chance.random() < 0.5:
                following.run_until_idle()
            for number in range(1, following.latest + 1):
                assert following.sealed(number) == truth.headers[number].hash
    following.run_until_idle()
    assert following.latest == BLOCKS - 1
    truth.close()


def test_buffers_stay_within_their_bounds(tmp_path: Path) -> None:
    chance = random.Random(7)
    bounds = BufferBounds(
        messages_per_feed=8, bytes_per_feed=40_000, messages=12, bytes=60_000, jobs_per_height=2
    )
    truth, following = Truth(tmp_path / "truth"), Following(tmp_path / "followed", bounds)
    jobs = sealed_jobs(truth)
    for _ in range(400):
        message = chance.choice(chance.choice(jobs).messages)
        following.receive(mutated(message, chance), feed=chance.choice("abc"))
        follower = following.follower
        assert len(follower.buffered) <= bounds.messages
        assert follower.buffered.size <= bounds.bytes
        assert len(follower.chain.jobs) <= 2 * 2 * 4 + 2
    for job in jobs:
        following.hear(*job.messages)
    truth.close()


def test_malformed_messages_are_counted_and_change_nothing(tmp_path: Path) -> None:
    truth, following = Truth(tmp_path / "truth"), Following(tmp_path / "followed")
    first, second, *_ = truth.job("1p", PLAN).messages
    for message in (
        replace(first, base=None),
        replace(second, base=first.base),
        replace(first, block_number=2),
        replace(second, block_number=0),
        replace(second, index=2**63),
        replace(second, diff=replace(second.diff, gas_used=2**64)),
    ):
        following.receive(message)
    assert following.counted("Malformed") == 6
    assert following.commits == 0
    truth.close()


def test_jobs_without_number_at_one_height_are_forgotten_and_do_not_come_back(
    tmp_path: Path,
) -> None:
    truth, following = Truth(tmp_path / "truth"), Following(tmp_path / "followed")
    job = truth.job("1p", PLAN)
    strays = [replace(job.messages[0], payload_id=bytes([at]) * 8) for at in range(20)]
    following.hear(*strays)
    assert len(following.follower.chain.jobs) == 2
    commits = following.commits
    following.hear(*strays)
    assert following.commits == commits
    truth.close()
