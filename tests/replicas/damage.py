"""A log that lost its end (6), a message of somebody else (6), a commit of many parts (9)."""

import asyncio
import secrets
import struct
import time
from collections.abc import Callable
from pathlib import Path

import nats

from replicas.fleet import Fleet, fleet, writing
from replicas.node import NAME, Node
from replicas.places import Place
from replicas.stopped import judge_fleet
from replicas.stream import HEADER, read_log
from support.servers.waiting import until

Say = Callable[[str], None]
HERE = [Place(0, is_apart=False)] * 3
LOST = 25  # commits
BIG = 20 << 20
SIZE = 120_000  # of a transaction's data; 128 KiB are allowed


def run_lost_end(folder: Path, say: Say) -> list[str]:
    """NATS forgets its last five seconds; the writer appends them again."""
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
            wrong.append("nobody says that the log was healed")
        return wrong if took <= 2 else [*wrong, f"healed after {took:.1f} s (bound 2)"]


def run_foreign_message(folder: Path, say: Say) -> list[str]:
    """Somebody writes into the stream; every replica refuses it, says so, and serves on."""
    with fleet(folder, HERE, "--load=20", copies=1, replicas=2) as made:
        made.level()
        publish(made, _foreign(made))
        for node in made.replicas:
            until(lambda node=node: _says_no(node.probe()), f"{node.name} says so")  # type: ignore[misc]
            node.ask("eth_getBlockByNumber", "latest", False)
        say("a foreign message: " + made.replicas[0].probe().strip().splitlines()[-1])
    return []


def _says_no(text: str) -> bool:
    return "not ready" in text and "log" in text


def _foreign(made: Fleet) -> bytes:
    """A message that fits in all but its link and the id of its log."""
    last = read_log(made.urls, NAME)[-1]
    head = HEADER.pack(
        b"FBLC", 1, 1, 0, 0, last.epoch, last.after, last.after + 1, secrets.token_bytes(16),
        secrets.token_bytes(32), 0,
    )  # fmt: skip
    assert len(head) == struct.calcsize(HEADER.format)
    return head


def publish(made: Fleet, message: bytes) -> None:
    """Put a message into the stream of the log, as nobody should."""

    async def publish() -> None:
        client = await nats.connect(made.urls)
        await client.jetstream().publish(f"fb.{NAME}.log", message)
        await client.close()

    asyncio.run(publish())


def run_large_commit(folder: Path, say: Say) -> list[str]:
    """One commit of 20 MB that cannot be compressed, through messages of 1 MB."""
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
    """Transactions of 120 kB of chance, from all accounts; gives the hash of the last."""
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
