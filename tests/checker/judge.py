"""Judges a journal: every response by its snapshot.

The feed is replayed first (`truth`); then each response's snapshot is found in it (`moment`), its
time is checked (`timeline`), and each result is compared with the block of its request (`subject`,
`answers`). No service is involved.
"""

import json
from collections import Counter
from dataclasses import dataclass, field

from checker.answers import Unjudged, judge_result, simulated_header
from checker.contradiction import Contradiction, Kind
from checker.inclusion import find_inclusion
from checker.journal import Exchange, Journal
from checker.json_type import Json
from checker.keccak import keccak256
from checker.messages import unhex
from checker.moment import Moment, find_moments, names_lie
from checker.place import Place
from checker.receipt_rendering import included_receipt
from checker.rendering import difference, included_transaction
from checker.subject import Subject, find_subject
from checker.timeline import judge_times
from checker.truth import Truth

# The position of the block parameter.
BLOCK_ARGUMENT = {
    "eth_getBlockByNumber": 0,
    "eth_getBlockByHash": 0,
    "eth_getBalance": 1,
    "eth_getTransactionCount": 1,
    "eth_call": 1,
    "eth_simulateV1": 1,
}
# Methods that return a transaction, and the form.
RENDERED = {
    "eth_getTransactionByHash": included_transaction,
    "eth_getTransactionReceipt": included_receipt,
}
# Methods that return null for an unknown block.
NULL_METHODS = frozenset({"eth_getBlockByNumber", "eth_getBlockByHash"})
# The documented response of all others.
ABSENT = frozenset({(-32000, "header not found"), (-32000, "header for hash not found")})


@dataclass(slots=True)
class Verdict:
    """The outcome of judging."""

    contradictions: list[Contradiction] = field(default_factory=list)
    judged: Counter[str] = field(default_factory=Counter)  # by method
    unjudged: Counter[str] = field(default_factory=Counter)  # by reason
    flashblocks: int = 0
    transactions: int = 0
    exchanges: int = 0

    def kinds(self) -> set[Kind]:
        """The kinds of contradiction found."""
        return {each.kind for each in self.contradictions}


class Judge:
    """Judges the responses of one chain."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self.verdict = Verdict()
        # Results found correct, by request and block.
        self._right: dict[tuple[object, ...], str] = {}

    def judge(self, exchanges: list[Exchange]) -> None:
        """Judge these responses, including snapshots and times."""
        verdict = self.verdict
        verdict.exchanges += len(exchanges)
        answered = [each for each in exchanges if each.answer]
        verdict.unjudged["no response"] += len(exchanges) - len(answered)
        believed = [each for each in answered if names_lie(self._truth, each)]
        verdict.unjudged["a flashblock that its feed contradicts"] += len(believed)
        answered = [each for each in answered if not names_lie(self._truth, each)]
        moments, contradictions = find_moments(self._truth, answered)
        verdict.contradictions += contradictions
        verdict.contradictions += judge_times(self._truth.chain, self._truth.places, moments)
        for moment in moments:
            self._judge_exchange(moment)

    def _judge_exchange(self, moment: Moment) -> None:
        asked, answer = json.loads(moment.exchange.request), json.loads(moment.exchange.answer)
        if not isinstance(asked, list):
            asked, answer = [asked], [answer]
        if not isinstance(answer, list) or len(asked) != len(answer):
            self._report(moment, Kind.ERROR, "a batch that is not answered as one", asked, answer)
            return
        for request, response in zip(asked, answer, strict=True):
            if request["id"] != response["id"]:
                self._report(moment, Kind.ERROR, "another request's id", request, response)
            else:
                self._judge_item(moment, request, response)

    def _judge_item(self, moment: Moment, request: Json, response: Json) -> None:
        method, params = request["method"], request["params"]
        if method == "eth_blockNumber":
            self._judge_height(moment, request, response)
            return
        if method in RENDERED:
            self._judge_inclusion(moment, request, response)
            return
        at = BLOCK_ARGUMENT.get(method)
        if at is None:
            self.verdict.unjudged[method] += 1
            return
        subject = find_subject(self._truth, moment, params[at])
        absent = _says_absent(method, response)
        if subject.presence == "must not":
            self._judge_absence(moment, request, response, subject, absent=absent)
        elif absent:
            self._judge_loss(moment, request, response, subject)
        elif "result" not in response:
            self._report(moment, Kind.ERROR, f"{response['error']}", request, response)
        else:
            self._judge_value(moment, request, response, subject)

    def _judge_height(self, moment: Moment, request: Json, response: Json) -> None:
        self.verdict.judged["eth_blockNumber"] += 1
        if response.get("result") != hex(moment.latest.number):
            self._report(moment, Kind.BLOCK, "not the number of latest", request, response)

    def _judge_inclusion(self, moment: Moment, request: Json, response: Json) -> None:
        """A transaction or receipt by its hash: in the snapshot's block, or null."""
        method, hash = request["method"], unhex(request["params"][0])  # noqa: A001, its name
        if "result" not in response:
            self._report(moment, Kind.ERROR, f"{response['error']}", request, response)
            return
        result, known = response["result"], self._truth.by_transaction.get(hash, ())
        if not known and result and int(result["blockNumber"], 16) < self._truth.places[0].number:
            self.verdict.unjudged["a transaction from before the recording"] += 1
            return
        self.verdict.judged[method] += 1
        found = find_inclusion(self._truth, moment, hash)
        expected = None if found is None else RENDERED[method](found.place, found.hash, found.at)
        where = difference(expected, result)
        if where is not None:
            dropped = found is None and any(place.dropped_by for place, _ in known)
            kind = Kind.DROPPED if dropped else Kind.INCLUSION
            self._report(moment, kind, where, request, response)

    def _judge_absence(
        self, moment: Moment, request: Json, response: Json, subject: Subject, *, absent: bool
    ) -> None:
        self.verdict.judged[request["method"]] += 1
        if absent:
            return
        if subject.dropped:
            self._report(moment, Kind.DROPPED, "its branch was given up", request, response)
        else:
            kind = Kind.PIN if subject.pinned else Kind.BLOCK
            self._report(moment, kind, "the snapshot has no such block", request, response)

    def _judge_loss(self, moment: Moment, request: Json, response: Json, subject: Subject) -> None:
        self.verdict.judged[request["method"]] += 1
        if subject.presence == "must":
            kind = Kind.PIN if subject.pinned else Kind.ERROR
            self._report(moment, kind, "the snapshot has this block", request, response)

    def _judge_value(self, moment: Moment, request: Json, response: Json, subject: Subject) -> None:
        method, params, result = request["method"], request["params"], response["result"]
        if subject.place is None:
            self.verdict.unjudged["a block from before the recording"] += 1
            return
        # Most responses repeat another one and need not be computed again.
        key = (method, json.dumps(params), subject.place.order, subject.hash)
        text = json.dumps(result)
        self.verdict.judged[method] += 1
        if self._right.get(key) == text:
            return
        try:
            wrong = judge_result(self._truth.chain, method, params, subject, subject.place, result)
            if method == "eth_simulateV1":
                header, claimed = simulated_header(result)
                if keccak256(header) != claimed:
                    what = "the simulated block's hash is not that of its header"
                    self._report(moment, Kind.SIMULATION, what, request, response)
        except Unjudged as why:
            self.verdict.judged[method] -= 1
            self.verdict.unjudged[str(why)] += 1
        except (KeyError, TypeError, ValueError, IndexError) as why:
            self._report(moment, Kind.ERROR, f"malformed: {why!r}", request, response)
        else:
            if wrong is None:
                self._right[key] = text
            else:
                # A pin that resolves to another block is worse than a wrong value.
                kind = Kind.PIN if subject.pinned and wrong[0] is Kind.BLOCK else wrong[0]
                self._report(moment, kind, wrong[1], request, response)

    def _report(self, moment: Moment, kind: Kind, what: str, request: Json, answer: Json) -> None:
        self.verdict.contradictions.append(
            Contradiction(
                kind,
                what,
                {
                    "snapshot": moment.exchange.snapshot,
                    "request": json.dumps(request),
                    "answer": json.dumps(answer),
                    "client": moment.exchange.client,
                    "sent, ns": moment.exchange.sent_ns,
                    "received, ns": moment.exchange.received_ns,
                },
            )
        )


def _says_absent(method: str, response: Json) -> bool:
    if method in NULL_METHODS:
        return "result" in response and response["result"] is None
    error = response.get("error", {})
    return (error.get("code"), error.get("message")) in ABSENT


def judge_journal(journal: Journal, truth: Truth | None = None) -> Verdict:
    """Return all errors in the journal; `truth` is its replayed feed, if available."""
    truth = truth or work_out(journal)
    judge = Judge(truth)
    judge.judge(journal.exchanges)
    verdict = judge.verdict
    verdict.contradictions[:0] = truth.contradictions
    verdict.flashblocks = len(truth.places)
    verdict.transactions = sum(job_end.count for job_end in _ends(truth.places))
    return verdict


def work_out(journal: Journal) -> Truth:
    """Replay the recorded feed."""
    truth = Truth(journal.chain, journal.senders)
    truth.read(journal.feed)
    truth.read_faulty(journal.heard)
    return truth


def _ends(places: list[Place]) -> list[Place]:
    """The last place of every block, including dropped ones."""
    following = [*places[1:], None]
    return [
        place
        for place, after in zip(places, following, strict=True)
        if after is None or after.index == 0
    ]
