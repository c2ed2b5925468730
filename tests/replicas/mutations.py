"""Nodes with one defect (11): the checks of a fleet must detect each of them.

Four scenes distinguish correct nodes from defective ones. In `_foreign` messages arrive that do not
continue the log: one that the stream stores, and one that it refuses. In `_crowded` foreign
messages occupy each sequence at which the writer wants to append. In `_deposed` a writer is halted
until another one writes, and then resumed: the log stays one chain. The fourth is that of other
clocks.
"""

import asyncio
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nats

from foreblock._engine import Store
from replicas.clocks import run_clocks
from replicas.damage import HERE, publish
from replicas.fleet import Fleet, fleet, is_writing, writing
from replicas.node import MUTATION, NAME, Node
from replicas.stopped import judge_fleet
from replicas.stream import HEADER, StoredCommit, end_of_chain, judge_log, read_log
from support.servers.waiting import until

Say = Callable[[str], None]
Scene = Callable[[Path, Say], list[str]]
TRIES = 3  # the defect only shows if a message comes at a bad time
CROWD = 3_000  # foreign messages
PATIENT = 20.0  # seconds in which a deposed writer must have tried to continue


def run_mutations(folder: Path, say: Say) -> list[str]:
    """First correct nodes in every scene, then each defective one."""
    scenes: dict[str, Scene] = {
        "announced before the log has it": _crowded,
        "appended without a condition": _deposed,
        "link not compared": _foreign,
        "applied without a head": _foreign,
        "note of the writer kept": run_clocks,
    }
    wrong = []
    for number, scene in enumerate(dict.fromkeys(scenes.values())):
        wrong += scene(folder / f"right{number}", lambda _: None)
    say(f"nodes without a fault: {len(wrong)} findings")
    for number, (name, scene) in enumerate(scenes.items()):
        found = ""
        for tried in range(TRIES):
            found = found or _finding(name, scene, folder / f"{number}.{tried}")
        say(f"{name}: {found or 'NOT FOUND'}")
        if not found:
            wrong.append(f"a node that has this wrong is not found: {name}")
    return wrong


def _finding(name: str, scene: Scene, folder: Path) -> str:
    with _wrong(name):
        try:
            return next(iter(scene(folder, lambda _: None)), "")
        except AssertionError as why:  # it waited for an event that never came
            return str(why) or repr(why)


@contextmanager
def _wrong(name: str) -> Iterator[None]:
    """Every started process has this defect."""
    os.environ[MUTATION] = name
    try:
        yield
    finally:
        del os.environ[MUTATION]


def _foreign(folder: Path, _: Say) -> list[str]:
    """All nodes skip both messages, and have the same store."""
    with fleet(folder, HERE, "--load=50", copies=1, replicas=2) as made:
        for node in made.writers:
            node.halt()
        last = _add_messages(made)
        for node in made.writers:
            node.resume()
        for node in made.replicas:
            until(lambda node=node: _has_decided(node, last.after + 3), f"{node.name} decides")  # type: ignore[misc]
            if "different history" in node.probe():
                return [f"{node.name} has applied a message that does not continue the log"]
        return judge_fleet(made, foreign=last.last_sequence + 1)[0]


def _has_decided(node: Node, commit: int) -> bool:
    return node.commit() >= commit or "different history" in node.probe()


def _add_messages(made: Fleet) -> StoredCommit:
    """Publish a valid message that is not stored, and store one that is valid except for its link.

    Return the commit before them.

    A writer may have sent its last commit just before it was halted. If that arrives after the log
    was read, they are made again.
    """
    while True:
        last = read_log(made.urls, NAME)[-1]
        until(lambda: all(each.commit() >= last.after for each in made.replicas), "all are level")  # noqa: B023
        publish(made, _message_after(last, last.link), last.last_sequence, is_refused=True)
        if publish(made, _message_after(last, secrets.token_bytes(32)), last.last_sequence):
            return last


def _message_after(last: StoredCommit, link: bytes) -> bytes:
    """An empty commit after one with this link."""
    with tempfile.TemporaryDirectory() as folder, Store(folder, write=True) as store:
        body = store.batch().encode()
    head = HEADER.pack(
        b"FBLC", 1, 1, 0, 0, last.epoch, last.after, last.after + 1, last.log_id, link, len(body)
    )
    return head + body


def _crowded(folder: Path, _: Say) -> list[str]:
    """No replica is ahead of the log, in which the writer finds no place."""
    with fleet(folder, HERE, "--load=50", copies=1, replicas=2) as made:
        asyncio.run(_crowd(made.urls))
        for node in made.writers:
            node.halt()
        seen = [(node.name, node.commit()) for node in made.replicas]
        end = end_of_chain(read_log(made.urls, NAME)).after
        return [f"{name} is at {at}, the log ends at {end}" for name, at in seen if at > end]


async def _crowd(urls: list[str]) -> None:
    """Put many foreign messages into the log."""
    client = await nats.connect(urls)
    try:
        for _ in range(CROWD):
            await client.jetstream().publish(f"fb.{NAME}.log", b"")
    finally:
        await client.close()


def _deposed(folder: Path, _: Say) -> list[str]:
    with fleet(folder, HERE, "--load=50", copies=1, replicas=1) as made:
        old = writing(made)
        (new,) = (each for each in made.writers if each is not old)
        old.halt()
        until(lambda: is_writing(new), "the standby writes")
        made.replicas[0].wait(commit=made.replicas[0].commit() + 3)
        old.resume()
        return _watched(made, old)


def _watched(made: Fleet, old: Node) -> list[str]:
    """Watch the log until the deposed writer follows, or has damaged it."""
    end = time.monotonic() + PATIENT
    while time.monotonic() < end:
        if wrong := judge_log(read_log(made.urls, NAME)):
            return wrong
        if not is_writing(old) and old.commit() >= made.replicas[0].commit() - 1:
            return []
    return [f"{old.name} does not follow {PATIENT:g} s after it was deposed"]
