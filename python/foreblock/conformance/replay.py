"""Replay cases against an endpoint, or a service of our own over the chain beside the cases.

A case passes if every reply is the one that the dialect promises: results and envelopes exactly,
errors in code and data. Error messages differ between servers, so they are shown but not
compared, unless requested. A method that the endpoint lacks makes the case `NOT_SERVED`: never
passed, and never silent.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from foreblock.conformance.cases import Case, CaseExchange
from foreblock.conformance.compare import NOTHING, Difference, differences, shape_differences
from foreblock.conformance.dialects import Dialect, promised
from foreblock.errors import InvalidArgument
from foreblock.ledger.importing.importer import import_files
from foreblock.service.running import serving
from foreblock.upstream.rpc_client import Endpoint

METHOD_NOT_FOUND: Final = -32601
NOT_YET: Final = "not available yet"
READ_ONLY: Final = "sequencer not available"  # of a service that only reads, as that of our own


class Verdict(Enum):
    """The result of a case."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_SERVED = "not served"


@dataclass(frozen=True)
class CaseOutcome:
    """A case, its verdict, and the differences; `remarks` do not count."""

    case: Case
    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    remarks: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class ReplayRules:
    """The dialect of replies, and whether error messages are compared."""

    dialect: Dialect = "ethereum"
    messages: bool = False


def replay(endpoint: Endpoint, cases: Iterable[Case], rules: ReplayRules) -> Iterator[CaseOutcome]:
    """The outcome of each case, in order."""
    for case in cases:
        yield _replay_case(endpoint, case, rules)


def _replay_case(endpoint: Endpoint, case: Case, rules: ReplayRules) -> CaseOutcome:
    wrong: list[Difference] = []
    remarks: list[Difference] = []
    for exchange in case.exchanges:
        body = endpoint.exchange(exchange.request)
        found = judge(exchange, body, rules, shape_only=case.shape_only)
        if found is None:
            return CaseOutcome(case, Verdict.NOT_SERVED)
        for difference in found:
            unheld = difference.in_message and not rules.messages
            (remarks if unheld else wrong).append(difference)
    verdict = Verdict.FAILED if wrong else Verdict.PASSED
    return CaseOutcome(case, verdict, tuple(wrong), tuple(remarks))


def judge(
    exchange: CaseExchange, body: bytes, rules: ReplayRules, *, shape_only: bool
) -> list[Difference] | None:
    """The differences between a reply and the expected one; None if its method is not served."""
    if exchange.reply is None:
        return [Difference("$", NOTHING, repr(body[:80]))] if body else []
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return [Difference("$", "JSON", repr(body[:80]))]
    expected = promised(rules.dialect, json.loads(exchange.request), json.loads(exchange.reply))
    differ = shape_differences if shape_only else differences
    # If the contract leaves a message open, every message is right.
    missed = [
        each
        for each in differ(expected, found)
        if not (each.in_message and each.expected == NOTHING)
    ]
    return None if missed and _not_served(found) else missed


def _not_served(reply: object) -> bool:
    match reply:
        case {"error": {"code": int(code), "message": str(message)}}:
            return code == METHOD_NOT_FOUND or NOT_YET in message or message == READ_ONLY
        case _:
            return False


@dataclass(frozen=True)
class Summary:
    """Outcomes by method."""

    outcomes: tuple[CaseOutcome, ...]

    def count(self, verdict: Verdict, method: str | None = None) -> int:
        """The number of cases with this verdict, of one method or of all."""
        return self.table[method, verdict] if method else self._total[verdict]

    @property
    def methods(self) -> list[str]:
        """The methods that have cases."""
        return sorted({outcome.case.method for outcome in self.outcomes})

    @property
    def table(self) -> Counter[tuple[str, Verdict]]:
        """Number of cases by method and verdict."""
        return Counter((each.case.method, each.verdict) for each in self.outcomes)

    @property
    def _total(self) -> Counter[Verdict]:
        return Counter(each.verdict for each in self.outcomes)


# --- Methods that are not served -----------------------------------------------------------

# By the prefix of their names.
REASONS: Final = (
    ("engine_", "the private interface of a consensus client, which has its own port"),
    ("testing_", "a block builder's private method"),
    ("admin_", "about peers, and there is no peer-to-peer network here"),
    ("miner_", "about mining, and nothing is mined here"),
    ("eth_sendRaw", "a service over an imported chain only reads"),
)


def reason_for(method: str) -> str | None:
    """The reason why a method is not served; None if it should be."""
    return next((why for start, why in REASONS if method.startswith(start)), None)


# --- A service over the chain of the cases -------------------------------------------------


@dataclass(frozen=True)
class ChainFiles:
    """Genesis, blocks and the fork choice, as `foreblock import` takes them."""

    genesis: Path
    chain: Path
    fork_choice: Path | None


def find_chain(folder: Path) -> ChainFiles:
    """The chain of a folder of cases: in it, above it, or in its `tests`.

    The last two fit a checkout of ethereum/execution-apis: the folder of one method, and
    the root.
    """
    for place in (folder, folder / "tests", folder.parent):
        if (place / "genesis.json").is_file() and (place / "chain.rlp").is_file():
            choice = place / "headfcu.json"
            return ChainFiles(
                place / "genesis.json", place / "chain.rlp", choice if choice.is_file() else None
            )
    raise InvalidArgument(
        f"no chain (genesis.json and chain.rlp) in {folder}, {folder / 'tests'} or "
        f"{folder.parent}; --url replays the cases against an endpoint that has it"
    )


@contextmanager
def served(chain: ChainFiles, options: Sequence[str] = ()) -> Iterator[str]:
    """The URL of a service over this chain, stopped and removed at the end."""
    with tempfile.TemporaryDirectory(prefix="foreblock-") as folder:
        data = Path(folder) / "store"
        import_files(chain.genesis, chain.chain, data, chain.fork_choice, lambda _: None)
        with serving(data, options) as service:
            yield service.url
