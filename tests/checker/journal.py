"""Requests, responses, transactions and flashblocks as JSON lines that can be judged again.

A journal is a folder. Every recording process and thread writes a separate file; times are
nanoseconds of the machine's monotonic clock, which is common to all.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from checker.chain import Chain, read_chain


@dataclass(frozen=True, slots=True)
class Exchange:
    """One HTTP request with its response, if any."""

    client: str
    sent_ns: int
    received_ns: int
    request: str
    answer: str
    snapshot: str | None  # the header Foreblock-Snapshot


@dataclass(slots=True)
class Journal:
    """All recorded data."""

    chain: Chain
    senders: dict[bytes, bytes] = field(default_factory=dict)  # by transaction hash
    feed: list[tuple[int, str]] = field(default_factory=list)  # time of receipt, and the message
    exchanges: list[Exchange] = field(default_factory=list)
    # The messages of a feed with faults, true or false.
    heard: list[str] = field(default_factory=list)


class JournalWriter:
    """Writes one file of a journal."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{name}.jsonl").open("w", encoding="utf-8")

    def chain(self, chain: Chain) -> None:
        """Record the chain; once in a journal."""
        self._write("chain", chain.as_json())

    def sender(self, transaction_hash: bytes, sender: bytes) -> None:
        """Record the signer of a transaction."""
        self._write("sender", {"hash": transaction_hash.hex(), "sender": sender.hex()})

    def flashblock(self, received_ns: int, message: str) -> None:
        """Record a message of the feed."""
        self._write("flashblock", {"received_ns": received_ns, "message": message})

    def heard(self, message: str) -> None:
        """Record a message of a feed with faults."""
        self._write("heard", {"message": message})

    def exchange(self, exchange: Exchange) -> None:
        """Record a request and its response."""
        self._write("exchange", asdict(exchange))

    def close(self) -> None:
        """Write the remaining data."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, kind: str, content: dict[str, Any]) -> None:
        self._file.write(json.dumps({"kind": kind, **content}) + "\n")


def read_journal(folder: Path) -> Journal:
    """Read the journal in a folder; `ValueError` without a chain."""
    lines = list(_lines(sorted(folder.glob("*.jsonl"))))
    chains = [read_chain(line) for line in lines if line["kind"] == "chain"]
    if len(chains) != 1:
        raise ValueError(f"{folder} describes {len(chains)} chains instead of one")
    journal = Journal(chains[0])
    for line in lines:
        match line.pop("kind"):
            case "sender":
                journal.senders[bytes.fromhex(line["hash"])] = bytes.fromhex(line["sender"])
            case "flashblock":
                journal.feed.append((line["received_ns"], line["message"]))
            case "heard":
                journal.heard.append(line["message"])
            case "exchange":
                journal.exchanges.append(Exchange(**line))
            case _:
                pass  # the chain, which was read before
    return journal


def _lines(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for text in file:
                yield json.loads(text)
