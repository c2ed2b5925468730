"""What was asked and answered, sent and announced, as JSON lines that can be judged again.

A journal is a folder. Every process and thread that has something to record writes a file
of its own; times are nanoseconds of the machine's monotonic clock, which all share.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from checker.chain import Chain, read_chain


@dataclass(frozen=True, slots=True)
class Exchange:
    """One HTTP request with its answer, or without one where none came."""

    client: str
    sent_ns: int
    received_ns: int
    request: str
    answer: str
    snapshot: str | None  # the header Foreblock-Snapshot


@dataclass(slots=True)
class Journal:
    """Everything that was recorded."""

    chain: Chain
    senders: dict[bytes, bytes] = field(default_factory=dict)  # by transaction hash
    feed: list[tuple[int, str]] = field(default_factory=list)  # when it came, the message
    exchanges: list[Exchange] = field(default_factory=list)
    # What a feed with faults has sent, true or not.
    heard: list[str] = field(default_factory=list)


class JournalWriter:
    """Writes one file of a journal."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{name}.jsonl").open("w", encoding="utf-8")

    def chain(self, chain: Chain) -> None:
        """What the chain is; once in a journal."""
        self._write("chain", chain.as_json())

    def sender(self, transaction_hash: bytes, sender: bytes) -> None:
        """Who has signed a transaction."""
        self._write("sender", {"hash": transaction_hash.hex(), "sender": sender.hex()})

    def flashblock(self, received_ns: int, message: str) -> None:
        """A message of the feed."""
        self._write("flashblock", {"received_ns": received_ns, "message": message})

    def heard(self, message: str) -> None:
        """A message of a feed with faults."""
        self._write("heard", {"message": message})

    def exchange(self, exchange: Exchange) -> None:
        """A request and its answer."""
        self._write("exchange", asdict(exchange))

    def close(self) -> None:
        """Write what is left."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, kind: str, content: dict[str, Any]) -> None:
        self._file.write(json.dumps({"kind": kind, **content}) + "\n")


def read_journal(folder: Path) -> Journal:
    """The journal in a folder; `ValueError` where nothing says what the chain is."""
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
                pass  # the chain, which is known
    return journal


def _lines(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for text in file:
                yield json.loads(text)
