"""Conversations in `tests/cases`, over the example chain: every reply equals that in its file.

A file applies to both dialects, or to the one at the end of its name: `gap.preconf.io`. Replies are
compared literally, including messages. Those of `eth_simulateV1` in `ethereum` are geth 1.17.2's
responses over the same chain, except for the differences in docs/simulate-differences.md.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import CHECKOUT, ChainFiles
from foreblock.conformance.cases import Case, read_cases
from foreblock.conformance.dialects import DIALECTS, Dialect
from foreblock.conformance.replay import ReplayRules, judge
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from support.each_case import each_case
from support.servers.asking import Asker, asker

CASES = read_cases(CHECKOUT / "tests" / "cases")
LITERALLY = ReplayRules("ethereum", messages=True)  # unchanged, in either dialect


def dialects(case: Case) -> tuple[Dialect, ...]:
    """The dialects of a case."""
    named = case.name.rpartition(".")[2]
    return tuple(each for each in DIALECTS if each == named) or DIALECTS


@pytest.fixture(scope="module")
def services(
    example: ChainFiles, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Dialect, Asker]]:
    """A client of the example chain for each dialect."""
    store: Path = tmp_path_factory.mktemp("cases") / "store"
    import_files(example.genesis, example.chain, store, example.fork_choice, lambda _: None)
    ledger = Ledger.open(str(store))
    with asker(ledger, "ethereum") as ethereum, asker(ledger, "preconf") as preconf:
        yield {"ethereum": ethereum, "preconf": preconf}
    ledger.close()


@each_case("case", CASES, ids=str)
def test_replies_are_as_written(services: dict[Dialect, Asker], case: Case) -> None:
    for dialect in dialects(case):
        for exchange in case.exchanges:
            assert exchange.reply is not None
            found = services[dialect].reply(exchange.request).body
            assert judge(exchange, found, LITERALLY, shape_only=False) == [], dialect


@each_case("case", CASES, ids=str)
def test_a_case_lies_with_its_method_and_has_its_counterpart(case: Case) -> None:
    assert {name for each in case.exchanges for name in each.methods} == {case.method}
    start, _, dialect = case.name.rpartition(".")
    if start:
        others = {each.name for each in CASES if each.method == case.method}
        assert {f"{start}.{each}" for each in DIALECTS} <= others, dialect
