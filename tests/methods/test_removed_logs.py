"""eth_getLogs by the hash of a removed block: the same result while its logs are kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.reading.view import Ledger
from support.chains.following import Following, Truth
from support.chains.writing import SCRIBE, Chain
from support.servers.asking import Asker, asker, error

UNKNOWN = error(-32000, "unknown block")


def logs_of(client: Asker, number: int) -> tuple[str, list[dict[str, Any]]]:
    """The hash of a block and all its logs, by that hash."""
    block_hash = client.ask("eth_getBlockByNumber", hex(number), False)["hash"]
    return block_hash, client.ask("eth_getLogs", {"blockHash": block_hash})


def check_filters(client: Asker, block_hash: str, logs: list[dict[str, Any]]) -> None:
    """Check that filters apply to a removed block like to any other."""
    for log in logs:
        named = {"blockHash": block_hash, "address": log["address"], "topics": log["topics"]}
        found = client.ask("eth_getLogs", named)
        assert log in found
        assert all(each["address"] == log["address"] for each in found)
    nothing = {"blockHash": block_hash, "address": "0x" + "ee" * 20}
    assert client.ask("eth_getLogs", nothing) == []


def test_blocks_that_came_as_a_whole(tmp_path: Path) -> None:
    truth, following = Truth(tmp_path / "truth"), Following(tmp_path / "followed")
    following.canonical(*truth.grow(4, "ours"))
    with asker(following.ledger, "ethereum") as client:
        before = [logs_of(client, number) for number in (3, 4)]
        assert all(logs for _, logs in before)
        truth.rewind(2)
        theirs = truth.grow(3, "theirs")
        following.follower.canonical(theirs[0], theirs[1:])
        following.run_until_idle()
        for number, (block_hash, logs) in zip((3, 4), before, strict=True):
            assert logs_of(client, number)[0] != block_hash
            assert client.ask("eth_getBlockByHash", block_hash, False) is None
            assert client.ask("eth_getLogs", {"blockHash": block_hash}) == logs
            check_filters(client, block_hash, logs)
        assert client.ask("eth_getLogs", {"blockHash": "0x" + "12" * 32}) == UNKNOWN
    following.close()
    truth.close()


@contextmanager
def asking(chain: Chain) -> Iterator[Asker]:
    with asker(Ledger(chain.store, clock=chain.clock), "ethereum") as client:
        yield client


def grow(chain: Chain, blocks: int) -> None:
    if not chain.block.partials:
        chain.add(chain.deposit())
    for number in range(blocks):
        for slot in (1, 2, 3):
            chain.add(chain.write(SCRIBE, slot, number))
        chain.seal(chain.deposit())
        chain.run_until_idle()


def test_blocks_of_flashblocks_until_they_are_pruned(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "store", keep_partials=4)
    grow(chain, 3)
    with asking(chain) as client:
        before = [logs_of(client, number) for number in (2, 3)]
        assert [len(logs) for _, logs in before] == [3, 3]
    with CommitBuilder(chain.store) as builder:
        builder.drop(chain.block.partials, "a test gives it up")
        builder.rewind(1)
        builder.commit()
    chain.reopen()
    with asking(chain) as client:
        for block_hash, logs in before:
            assert client.ask("eth_getLogs", {"blockHash": block_hash}) == logs
            check_filters(client, block_hash, logs)
    grow(chain, 9)
    with asking(chain) as client:
        for block_hash, _ in before:
            assert client.ask("eth_getLogs", {"blockHash": block_hash}) == UNKNOWN
    chain.store.close()
