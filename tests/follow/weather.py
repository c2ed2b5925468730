"""The choice of faults for each request: seeded, each kind at its rate.

One generator draws in the order of requests, so the same sequence of requests has the same faults.
At most one kind of each stage applies to a request or an item.
"""

import asyncio
import json
import random
import time
from collections import deque
from pathlib import Path
from typing import IO, Any

from follow.counting import Counts
from follow.damage import Damage, damage_batch, lie
from follow.fault_kinds import KINDS, Rate, Stage
from follow.refusals import Tip, refusal

Json = Any
BATCH_KINDS = ("reordered", "missing-item")
HEIGHTS = (2, 0, 1)  # blocks below the tip, in turn: heights 1, 3, 2
JOURNAL = 200_000  # lines kept in memory


class Weather:
    """The faults of one upstream, and their record."""

    def __init__(self, rates: dict[str, Rate], seed: int, journal: Path | None = None) -> None:
        self.counts = Counts()
        self.journal: deque[dict[str, Json]] = deque(maxlen=JOURNAL)
        self.tip: Tip | None = None  # of the upstream, if it is polled
        self.speaks = asyncio.Event()
        self.speaks.set()
        self._pick = random.Random(seed)
        self._damage = Damage(self._pick)
        self._file: IO[str] | None = journal.open("a", encoding="utf-8") if journal else None
        self.lies: dict[tuple[str, int], int] = {}  # address and slot to false value
        self._turn = 0
        self._speaking: asyncio.TimerHandle | None = None
        self.change(rates)

    def change(self, rates: dict[str, Rate]) -> None:
        """Apply these faults from now on."""
        self.rates = {name: rate for name, rate in rates.items() if rate.share > 0}
        self._by_stage: dict[Stage, list[tuple[str, Rate]]] = {}
        for name, rate in self.rates.items():
            self._by_stage.setdefault(KINDS[name].stage, []).append((name, rate))

    @property
    def is_fair(self) -> bool:
        """Return whether no fault can occur."""
        return not self.rates and not self.lies

    @property
    def wants_tip(self) -> bool:
        """Return whether a fault needs the latest block."""
        return not self.rates.keys().isdisjoint({"heights", "tip-only-proofs"})

    def close(self) -> None:
        """Close the journal."""
        if self._file:
            self._file.close()

    def fall_silent(self, seconds: float) -> None:
        """Be silent for this many seconds; requests wait. 0 ends it."""
        if self._speaking:
            self._speaking.cancel()
        self.speaks.clear()
        self._speaking = asyncio.get_running_loop().call_later(seconds, self.speaks.set)

    def strikes(self, stage: Stage) -> tuple[str, Rate] | None:
        """The kind of a stage that applies to this HTTP request."""
        for name, rate in self._by_stage.get(stage, ()):
            if self._pick.random() < rate.share:
                return name, rate
        return None

    def waiting(self) -> float:
        """The delay of this request in seconds."""
        seconds = 0.0
        for name, rate in self._by_stage.get("wait", ()):
            if self._pick.random() < rate.share:
                amount = rate.amount * (self._pick.random() if name == "jitter" else 1)
                self.note(name, [], f"{amount:.3f} s", log=False)
                seconds += amount
        return seconds

    def choose(self, number: int) -> int:
        """Choose one of this many."""
        return self._pick.randrange(number)

    def refused(self, request: Json, *, in_batch: bool) -> Json:
        """The error object of a rejected item."""
        for name, rate in self._by_stage.get("refusal", ()):
            found = refusal(name, request, self.tip, in_batch=in_batch)
            if found and self._pick.random() < rate.share:
                self.note(name, [request], found["message"])
                return found
        return None

    def rewritten(self, request: Json) -> Json:
        """The request that is sent instead, in which latest is an older block."""
        rate = self.rates.get("heights")
        if rate is None or self.tip is None or request.get("method") != "eth_getBlockByNumber":
            return request
        params = request.get("params") or []
        if params[:1] != ["latest"] or self._pick.random() >= rate.share:
            return request
        height = max(self.tip.number - self._back(), 0)
        self.note("heights", [request], hex(height))
        return {**request, "params": [hex(height), *params[1:]]}

    def damaged(self, requests: list[Json], answers: list[Json]) -> bool:
        """Damage some responses in place; return whether any was."""
        by_id = {json.dumps(each.get("id")): each for each in requests}
        was_struck = False
        for answer in answers:
            request = by_id.get(json.dumps(answer.get("id")))
            if request is None:
                continue
            true = answer.get("result")
            if self.lies and lie(self.lies, request, answer):
                self.note("told lie", [request], "another value of a slot")
                was_struck = True
            was_struck = self._strike(request, answer) or was_struck
            self._damage.remember(request, true)
        for name in BATCH_KINDS:
            rate = self.rates.get(name)
            if rate and len(answers) > 1 and self._pick.random() < rate.share:
                how = damage_batch(name, answers, self._pick)
                if how:
                    self.note(name, requests, how)
                    was_struck = True
        return was_struck

    def _strike(self, request: Json, answer: Json) -> bool:
        height = self.rates.get("heights")
        if height and request["method"] == "eth_blockNumber" and answer.get("result"):
            answer["result"] = hex(max(int(answer["result"], 16) - self._back(), 0))
            self.note("heights", [request], answer["result"])
            return True
        for name, rate in self._by_stage.get("damage", ()):
            if name in BATCH_KINDS or self._pick.random() >= rate.share:
                continue
            how = self._damage.strike(name, rate.amount, request, answer)
            if how:
                self.note(name, [request], how)
                return True
        return False

    def _back(self) -> int:
        self._turn += 1
        return HEIGHTS[self._turn % len(HEIGHTS)]

    def note(self, kind: str, requests: list[Json], how: str, *, log: bool = True) -> None:
        """Count a fault, and write it into the journal."""
        self.counts.struck[kind] += 1
        if not log:
            return
        line = {
            "at": time.monotonic(),
            "kind": kind,
            "requests": [
                {key: each.get(key) for key in ("id", "method", "params")} for each in requests[:4]
            ],
            "how": how,
        }
        self.journal.append(line)
        if self._file:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
