"""Clients that apply notifications and can be interrupted at any time."""

import json
from collections.abc import Hashable
from typing import Any

from foreblock.ledger.reading.events import read_cursor
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.events.kinds import Kind, position_after
from foreblock.scheduling.steps import Steps

Json = Any


def run(steps: Steps[Any]) -> Any:  # noqa: ANN401, of any kind
    """Return the result of a generator of steps."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


class Watcher:
    """A client of one kind of subscription; its only saved state is the text of its cursor."""

    def __init__(self, kind: Kind, wanted: Hashable, view: LedgerView) -> None:
        self.kind = kind
        self.wanted = wanted
        self.cursor = kind.track.end(view).text
        self.heard: list[Json] = []

    def poll(self, view: LedgerView, most: int = 1 << 30) -> bool:
        """Apply new results, up to a limit; return whether there are no more."""
        while most > 0:
            at = read_cursor(self.cursor)
            assert at is not None
            step = self.kind.track.next(view, at)
            if step is None:
                return True
            if step.event is not None:
                notices = run(self.kind.render(view, step.event, [self.wanted]))
                for notice in notices.get(self.wanted, []):
                    if not most:
                        return False
                    most -= 1
                    self.apply(json.loads(notice.text))
                    self.cursor = position_after(at, step, notice.seen).text
            self.cursor = step.then.text
        return False

    def apply(self, result: Json) -> None:
        self.heard.append(result)


class LogWatcher(Watcher):
    """Holds the logs of the chain: removed logs are taken back in reverse order."""

    def apply(self, result: Json) -> None:
        removed = result.pop("removed")
        if removed:
            assert self.heard.pop() == result, "a removed log was the last added one"
        else:
            self.heard.append(result)


class HeadWatcher(Watcher):
    """Holds the headers of the chain: a new header replaces all from its height on."""

    def apply(self, result: Json) -> None:
        number = int(result["number"], 16)
        self.heard = [each for each in self.heard if int(each["number"], 16) < number]
        if self.heard:
            assert self.heard[-1]["hash"] == result["parentHash"]
        self.heard.append(result)


class GrowthWatcher(Watcher):
    """Holds the flashblocks of the block in progress: a new one replaces all from its index on."""

    def apply(self, result: Json) -> None:
        index = int(result["flashblockIndex"], 16)
        is_known = bool(self.heard) and self.heard[-1]["parentHash"] == result["parentHash"]
        self.heard = self.heard[:index] if is_known else []
        assert len(self.heard) == index, "none is missing"
        self.heard.append(result)
        assert int(result["transactionCount"], 16) == len(self.transactions)

    @property
    def transactions(self) -> list[Json]:
        """All transactions of the block, without its hash."""
        return [
            {key: value for key, value in each.items() if key != "blockHash"}
            for result in self.heard
            for each in result["transactions"]
        ]
