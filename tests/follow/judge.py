"""Compares every response of a follower with its upstream's response about the same block.

Requests to the follower (B) use a tag, a number or a pin. Its response identifies the block: the
header `Foreblock-Snapshot` has latest and pending, and the batch resolves numbers. The request to
the upstream (A) names exactly that block, so elapsed time makes no difference. A response is either
equal to the letter or a difference.
"""

import json
import random
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from follow.batch_client import Answered, BatchClient, Identity, Request, plain
from follow.questions import Question, Questions

Json = Any
BATCH = 12  # requests per batch
PINS = 60  # kept for later requests
OLD = 60  # blocks; pins are kept for 64, counted separately by a chain and its follower
# The block parameter of a batch.
ABOUT = ("pending",) * 4 + ("latest",) * 2 + ("pin", "number", "hash")
# Errors of a temporarily unavailable follower; every other error is a response.
NOT_NOW = {-32002, -32005}
SHOWN = 400  # characters of a response
REASON = 120  # characters of an error


@dataclass(slots=True)
class Verdict:
    """The results of comparisons."""

    answers: Counter[str] = field(default_factory=Counter)  # compared and equal, by kind
    abouts: Counter[str] = field(default_factory=Counter)  # compared and equal, by block parameter
    errors: Counter[str] = field(default_factory=Counter)  # equal, and an error at both
    differences: list[str] = field(default_factory=list)
    unanswered: Counter[str] = field(default_factory=Counter)  # by reason
    unanswered_kinds: Counter[str] = field(default_factory=Counter)
    unjudged: Counter[str] = field(default_factory=Counter)  # the upstream failed
    gone: int = 0  # about blocks that are no longer kept, without a guarantee
    seconds: list[float] = field(default_factory=list)  # of a batch at the follower

    def add(self, other: "Verdict") -> None:
        """Add the results of another client."""
        for mine, theirs in (
            (self.answers, other.answers), (self.abouts, other.abouts),
            (self.errors, other.errors), (self.unanswered, other.unanswered),
            (self.unanswered_kinds, other.unanswered_kinds), (self.unjudged, other.unjudged),
        ):  # fmt: skip
            mine.update(theirs)
        self.gone += other.gone
        self.differences += other.differences
        self.seconds += other.seconds

    def _kinds(self) -> dict[str, int]:
        """The number of differences by kind, with examples."""
        return dict(Counter(each.partition(":")[0] for each in self.differences).most_common(8))

    def lines(self) -> list[str]:
        """A table of the results."""
        shown = [f"{self.answers.total():>9,} responses compared and equal, "
                 f"{self.errors.total():,} of them errors at both",
                 f"{len(self.differences):>9,} differences {self._kinds() or ''}",
                 f"{self.unanswered.total():>9,} not answered",
                 *(f"{count:>9,} not answered: {why}"
                   for why, count in self.unanswered.most_common()),
                 *(f"{count:>9,} not answered, of {kind}"
                   for kind, count in self.unanswered_kinds.most_common(5)),
                 f"{self.unjudged.total():>9,} not judged {dict(self.unjudged) or ''}",
                 f"{self.gone:>9,} about blocks that are no longer kept"]  # fmt: skip
        shown += [f"{count:>9,} {kind}" for kind, count in self.answers.most_common()]
        shown += [f"{count:>9,} about {name}" for name, count in self.abouts.most_common()]
        if self.seconds:
            times = sorted(self.seconds)
            shown.append(
                f"a batch of {BATCH}: median {times[len(times) // 2] * 1e3:.1f} ms, "
                f"99 % {times[len(times) * 99 // 100] * 1e3:.1f} ms"
            )
        return shown


class Judge:
    """One client of both nodes."""

    def __init__(
        self, upstream: str, follower: str, questions: Questions, *, seed: int, anchor: int = 0
    ) -> None:
        """Never requests numbers below `anchor`."""
        self.upstream = BatchClient(upstream)
        self._follower = BatchClient(follower)
        self._questions = questions
        self._anchor = anchor
        self._pick = random.Random(seed)
        self._pins: deque[Identity] = deque(maxlen=PINS)
        self.latest: Identity | None = None
        self.verdict = Verdict()

    def close(self) -> None:
        self.upstream.close()
        self._follower.close()

    def step(self) -> None:
        """Send and compare one batch."""
        about = self._choose()
        questions = [self._questions.next() for _ in range(BATCH)]
        block, named = self._named(about)
        if named is None:  # the response identifies the block
            questions = [each for each in questions if not each.wants_hash]
        requests = [each.about(block, named.hash if named else "") for each in questions]
        requests.append(("eth_getBlockByNumber", [block, False]))
        found = self._follower.ask(requests)
        self.verdict.seconds.append(found.seconds)
        if found.answers is None:
            self.verdict.unanswered[found.why] += len(requests)
            return
        if about == "pin" and _all_gone(questions, found.answers):
            self.verdict.gone += len(requests)
            return
        identity = named or self._identity(about, found)
        self._remember(found)
        if identity and found.base and _is_before(identity, found.base):
            self.verdict.gone += len(requests)
            return
        if identity is None:
            self.verdict.unjudged["it names no block"] += len(requests)
            return
        self.judge_answers(about, questions, found.answers, identity)

    # --- Block parameters ------------------------------------------------------------------

    def _choose(self) -> str:
        about = self._pick.choice(ABOUT)
        if about == "pin" and not self._pins:
            return "pending"
        latest = self.latest
        if about in {"number", "hash"} and (latest is None or latest.number < self._anchor):
            return "latest"
        return about

    def _named(self, about: str) -> tuple[Json, Identity | None]:
        """The block parameter, and the block if the parameter identifies it."""
        if about == "pin":
            pin = self._pick.choice(self._pins)
            return pin.block, pin
        if about == "hash":
            assert self.latest is not None
            return self.latest.block, self.latest
        if about == "number":
            assert self.latest is not None
            lowest = max(self._anchor, self.latest.number - 200)
            return hex(self._pick.randint(lowest, self.latest.number)), None
        return about, None

    def _identity(self, about: str, found: Answered) -> Identity | None:
        if about == "latest":
            return found.latest
        if about == "pending":
            return found.pending
        assert found.answers is not None
        block = plain(found.answers[-1].get("result")) or {}
        return Identity(int(block["number"], 16), block["hash"]) if block.get("hash") else None

    def _remember(self, found: Answered) -> None:
        self.latest = found.latest or self.latest
        if found.pending and found.pending.flashblock is not None:
            self._pins.append(found.pending)

    # --- Equal or not ----------------------------------------------------------------------

    def judge_answers(
        self, about: str, questions: Sequence[Question], answers: list[Json], identity: Identity
    ) -> None:
        own = Question("the block itself", "eth_getBlockByNumber", ["<block>", False])
        asked = [*questions, own]
        requests: list[Request] = [each.of(identity) for each in asked]
        true = self.upstream.ask(requests)
        if true.answers is None:
            self.verdict.unjudged[f"upstream: {true.why}"] += len(asked)
            return
        if self._is_old(about, identity, true.latest) and _all_gone(questions, true.answers):
            self.verdict.gone += len(asked)  # the follower keeps it slightly longer
            return
        for question, request, mine, theirs in zip(
            asked, requests, answers, true.answers, strict=True
        ):
            self.compare(about, question, request, mine, theirs)

    def _is_old(self, about: str, identity: Identity, true: Identity | None) -> bool:
        """Return whether the chain may have dropped this pin: its follower may be behind."""
        heights = [each.number for each in (self.latest, true) if each is not None]
        return about == "pin" and bool(heights) and max(heights) - identity.number >= OLD

    def compare(
        self, about: str, question: Question, request: Request, mine: Json, theirs: Json
    ) -> None:
        error = mine.get("error")
        if error and error["code"] in NOT_NOW:
            self.verdict.unanswered[reason(error)] += 1
            self.verdict.unanswered_kinds[f"{question.kind} at {about}"] += 1
            return
        if _content(mine) != _content(theirs):
            self.verdict.differences.append(
                f"{question.kind} at {about}: {json.dumps(request)[:SHOWN]}\n"
                f"  follower {_around(mine, theirs)}\n  upstream {_around(theirs, mine)}"
            )
            return
        self.verdict.answers[question.kind] += 1
        self.verdict.abouts[about] += 1
        if error:
            self.verdict.errors[f"{question.kind}: {error['message'][:60]}"] += 1


def reason(error: Json) -> str:
    """The text of an error without numbers, to group equal errors."""
    message = re.sub(r"0x[0-9a-f]+|[0-9]+(\.[0-9]+)?", "#", error["message"])
    return f"{error['code']} {message[:REASON]}"


def _is_before(block: Identity, base: Identity) -> bool:
    """Return whether the follower has restarted above this block.

    A block in progress is also gone if it became the new anchor.
    """
    first = base.number if block.flashblock is None else base.number + 1
    return block.number < first


def _all_gone(questions: Sequence[Question], answers: list[Json]) -> bool:
    """Return whether all responses report a dropped pin; logs remain available by hash for
    a while.
    """
    kinds = [*(each.kind for each in questions), "block"]
    return all(_is_gone(each) for kind, each in zip(kinds, answers, strict=True) if kind != "logs")


def _is_gone(answer: Json) -> bool:
    """Return whether the error is an unknown partial block."""
    if "error" in answer:
        return bool(answer["error"]["message"] in {"header for hash not found", "unknown block"})
    return answer["result"] is None


def _content(answer: Json) -> Json:
    return {key: answer.get(key) for key in ("result", "error")}


def _around(one: Json, other: Json) -> str:
    """The part of a text around its first difference."""
    text, against = (json.dumps(_content(each), default=plain) for each in (one, other))
    at = next((i for i, pair in enumerate(zip(text, against, strict=False)) if pair[0] != pair[1]),
              min(len(text), len(against)))  # fmt: skip
    return ("…" if at > 40 else "") + text[max(at - 40, 0) : at + SHOWN]


@dataclass(slots=True)
class JudgePlan:
    """The clients of a comparison and their rates."""

    upstream: str
    follower: str
    seed: int = 0
    clients: int = 2
    rate: float = 10.0  # batches a second of each client
    anchor: int = 0
    leave_out: Sequence[str] = ()
    repeated: int | None = None  # number of requests that each client repeats


def judge(plan: JudgePlan, senders: Sequence[Any], stop: threading.Event) -> Verdict:
    """Send and compare from several threads until stopped."""
    judges = [
        Judge(
            plan.upstream, plan.follower,
            Questions(senders, plan.seed + at, plan.leave_out, plan.repeated),
            seed=plan.seed + at, anchor=plan.anchor,
        )
        for at in range(plan.clients)
    ]  # fmt: skip
    threads = [threading.Thread(target=_run, args=(each, plan.rate, stop)) for each in judges]
    for thread in threads:
        thread.start()
    verdict = Verdict()
    for thread, each in zip(threads, judges, strict=True):
        thread.join()
        each.close()
        verdict.add(each.verdict)
    return verdict


def _run(one: Judge, rate: float, stop: threading.Event) -> None:
    begun, done = time.monotonic(), 0
    while not stop.is_set():
        one.step()
        done += 1
        stop.wait(max(begun + done / rate - time.monotonic(), 0))
