"""All workers give the same responses: separate processes, over one growing store."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foreblock.ledger.reading.view import Ledger
from support.chains.preconfirming import PAID, PreconfirmingChain
from support.payloads.bytecode import returning
from support.servers.asking import asker, request
from support.servers.serving import environment
from support.servers.waiting import PATIENCE

pytestmark = pytest.mark.heavy

# Responds to one body per line until its input ends, at the time of its start.
READER = """
import sys
from foreblock.clock import DrivenClock
from foreblock._engine import Store
from foreblock.ledger.reading.view import Ledger
from support.servers.asking import Asker
asker = Asker(Ledger(Store(sys.argv[1]), clock=DrivenClock()))
for line in sys.stdin.buffer:
    reply = asker.reply(line)
    sys.stdout.buffer.write(reply.headers.strip() + b" " + reply.body + b"\\n")
    sys.stdout.buffer.flush()
asker.close()
"""
TO = "0x00000000000000000000000000000000000c0de0"


class Reader:
    """A worker, reduced to its responses."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def ask(self, body: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(body + b"\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip(b"\n")


@contextmanager
def reader(folder: Path) -> Iterator[Reader]:
    process = subprocess.Popen(
        [sys.executable, "-c", READER, str(folder)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    try:
        yield Reader(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    found = PreconfirmingChain(tmp_path / "store")
    yield found
    found.close()


def bodies() -> list[bytes]:
    """Blocks, balances, calls and simulations, under moving names and fixed ones."""
    first = {"blockNumber": "0x1", "flashblockIndex": "0x0"}
    code = {TO: {"code": returning("NUMBER")}}
    asked = []
    for name in ("pending", "latest", first):
        asked += [
            request("eth_getBlockByNumber", name, True),
            request("eth_getBlockByNumber", name, False),
            request("eth_getBalance", "0x" + PAID.hex(), name),
            request("eth_call", {"to": TO}, name, code),
            request("eth_simulateV1", {"blockStateCalls": [{"stateOverrides": code}]}, name),
        ]
    return asked


def test_readers_answer_alike_after_every_commit(chain: PreconfirmingChain, tmp_path: Path) -> None:
    """One that reads throughout, one that begins later, and one beside the writer."""
    chain.begin()
    ledger = Ledger(chain.store, clock=chain.clock)
    folder = tmp_path / "store"
    with reader(folder) as one, asker(ledger) as beside:
        answers = set()
        for step in range(6):
            if step == 3:
                chain.begin()
            else:
                chain.extend([chain.pay(), chain.pay()])
            with reader(folder) as other:
                for body in bodies():
                    reply = beside.reply(body)
                    expected = reply.headers.strip() + b" " + reply.body
                    assert one.ask(body) == expected
                    assert other.ask(body) == expected
                    assert "error" not in json.loads(reply.body)
                    answers.add(expected)
    assert len(answers) > 60, "the responses do change"
