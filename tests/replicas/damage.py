"""A log that lost its end (6), foreign messages (6), a commit of many parts (9)."""

import asyncio
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import nats
from nats.js.errors import APIError

from replicas.fleet import Fleet, fleet, writing
from replicas.node import NAME, Node
from replicas.places import Place
from replicas.stopped import judge_fleet
from replicas.stream import HEADER, StoredCommit, read_log
from support.servers.waiting import until

Say = Callable[[str], None]
HERE = [Place(0, is_apart=False)] * 3
LOST = 25  # commits
BIG = 20 << 20
SIZE = 120_000  # of a transaction's data; 128 KiB are allowed


def run_lost_end(folder: Path, say: Say) -> list[str]:
    """NATS loses its last five seconds; the writer appends them again."""
    with fleet(folder, HERE, "--load=100", copies=1) as made:
        (server,) = made.servers
        server.kill()
        copy = server.save()
        server.start()
        made.replicas[0].wait(commit=made.level() + LOST)
        made.level()
        server.kill()
        server.restore(copy)
        before = max(each.commit() for each in made.nodes)
        server.start()
        began = time.monotonic()
        made.replicas[0].wait(commit=before + 2)
        took = time.monotonic() - began
        healed = [each for node in made.writers for each in node.events("log_healed")]
        say(
            f"an end of {LOST} commits is lost: next after {took:.1f} s, healed {len(healed)} times"
        )
        wrong, told = judge_fleet(made)
        say(told)
        if not healed:
            wrong.append("no node reports that the log was healed")
        return wrong if took <= 2 else [*wrong, f"healed after {took:.1f} s (bound 2)"]


def run_lost_stream(folder: Path, say: Say) -> list[str]:
    """NATS loses everything; the writer creates the stream again."""
    with fleet(folder, HERE, "--load=100", copies=1) as made:
        (server,) = made.servers
        before = made.level()
        server.kill()
        (server.folder / "empty").mkdir()
        server.restore(server.folder / "empty")
        server.start()
        began = time.monotonic()
        for node in made.nodes:
            node.wait(commit=before + 5)
        say(f"the stream is lost: next commits after {time.monotonic() - began:.1f} s")
        wrong, told = judge_fleet(made)
        say(told)
        return wrong


def run_foreign_message(folder: Path, say: Say) -> list[str]:
    """A foreign message in the stream: all nodes skip and report it, and have the same store."""
    wrong = []
    with fleet(folder, HERE, "--load=20", copies=1, replicas=2) as made:
        last = read_log(made.urls, NAME)[-1]
        for what, message in _foreign(last).items():
            before = made.level()
            publish(made, message)
            began = time.monotonic()
            for node in made.nodes:
                node.wait(commit=before + 3)
            say(f"{what}: next commits after {time.monotonic() - began:.1f} s")
        for node in made.nodes:
            until(lambda node=node: "messages skipped" in node.probe(), f"{node.name} says so")  # type: ignore[misc]
        if read_log(made.urls, NAME)[-1].epoch != last.epoch:
            wrong.append("the writer has changed")
        found, told = judge_fleet(made)
        say(told)
        return wrong + found


def _foreign(last: StoredCommit) -> dict[str, bytes]:
    """Messages that are no commits of the log, by kind."""
    commit = HEADER.pack(
        b"FBLC", 1, 1, 0, 0, last.epoch, last.after, last.after + 1, secrets.token_bytes(16),
        secrets.token_bytes(32), 0,
    )  # fmt: skip
    return {
        "seven bytes": secrets.token_bytes(7),
        "nothing": b"",
        "a foreign commit": commit,
        "a truncated commit": commit[:-2],
        "a large message": bytes(1 << 20),
    }


def publish(
    made: Fleet, message: bytes, after: int | None = None, *, is_refused: bool = False
) -> bool:
    """Put a foreign message into the stream of the log.

    With `after`, only if the stream ends at this sequence; return False otherwise. One that
    `is_refused` reaches the subscribers, and not the stream.
    """
    headers = {} if after is None else {"Nats-Expected-Last-Sequence": str(after)}
    if is_refused:
        headers["Nats-Expected-Last-Msg-Id"] = "none"

    async def publish() -> bool:
        client = await nats.connect(made.urls)
        try:
            await client.jetstream().publish(f"fb.{NAME}.log", message, headers=headers)
        except APIError:
            return False
        finally:
            await client.close()
        return True

    return asyncio.run(publish())


def run_large_commit(folder: Path, say: Say) -> list[str]:
    """One incompressible commit of 20 MB, through messages of 1 MB."""
    options = ("--interval=8", "--block-time=8", "--gas-limit=4000000000")
    with fleet(folder, HERE, *options, copies=1, payload="1MB") as made:
        node = writing(made)
        last = _send_random_data(node)
        until(lambda: node.ask("eth_getTransactionReceipt", last)[0], "all are in blocks")
        made.level()
        commits = read_log(made.urls, NAME)
        largest = max(each.size for each in commits)
        say(f"the largest commit of the log has {largest / 1e6:.1f} MB")
        wrong, told = judge_fleet(made)
        say(told)
        return wrong if largest >= BIG else [*wrong, f"the largest commit has {largest} bytes"]


def _send_random_data(node: Node) -> str:
    """Random transactions of 120 kB, from all accounts; returns the hash of the last."""
    accounts, _ = node.ask("eth_accounts")
    last = ""
    for number in range(BIG // SIZE * 5 // 4):
        sent = {
            "from": accounts[number % len(accounts)],
            "to": "0x" + "77" * 20,
            "gas": hex(6_000_000),
            "data": "0x" + secrets.token_hex(SIZE),
        }
        last, _ = node.ask("eth_sendTransaction", sent)
    return last
