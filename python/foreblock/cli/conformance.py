"""`foreblock conformance`: published test cases against a service, as a table or JSON."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from foreblock.cli.progress import STEP_SECONDS, progress
from foreblock.cli.verb import (
    argument,
    failing_in_one_line,
    json_option,
    option,
    unwinding_on_signals,
    verb,
)
from foreblock.conformance.cases import Case, read_cases
from foreblock.conformance.dialects import DIALECTS, Dialect
from foreblock.conformance.replay import (
    ReplayRules,
    Summary,
    Verdict,
    find_chain,
    reason_for,
    replay,
    served,
)
from foreblock.upstream.rpc_client import Endpoint

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@verb(examples=["foreblock conformance tests/ --method eth_call"])
@argument(
    "folder",
    help="Directory of cases, with the chain that they are for.",
    metavar="DIR",
    type=_FOLDER,
)
@option(
    "--dialect",
    type=click.Choice(DIALECTS),
    default="ethereum",
    help="Dialect to serve and to compare with.",
)
@option("--url", metavar="URL", help="Test this endpoint instead of a service of our own.")
@option(
    "--method",
    "methods",
    metavar="NAME",
    multiple=True,
    help="Only cases of this method; repeatable.",
)
@option("--messages", is_flag=True, help="Compare error messages literally.")
@json_option()
def conformance(
    *,
    folder: Path,
    dialect: Dialect,
    url: str | None,
    methods: tuple[str, ...],
    messages: bool,
    as_json: bool,
) -> None:
    """Replay published requests and compare the replies.

    DIR holds cases (*.io) as ethereum/execution-apis publishes them; their chain (genesis.json,
    chain.rlp, headfcu.json) is in it, above it or in its tests directory. The chain is imported
    and served on a free port, and every reply is compared field by field. Exits with 1 if a case
    fails, if none passes, or if a method named by --method is not served.
    """
    with failing_in_one_line(), unwinding_on_signals():
        cases = _chosen(read_cases(folder), methods)
        with (
            _endpoint(folder, url, dialect) as address,
            Endpoint(address) as endpoint,
            progress("conformance", STEP_SECONDS) as report,
        ):
            outcomes = []
            for outcome in replay(endpoint, cases, ReplayRules(dialect, messages)):
                outcomes.append(outcome)
                report(f"{outcome.verdict.value}: {outcome.case}", len(outcomes), len(cases))
    summary = Summary(tuple(outcomes))
    if as_json:
        click.echo(json.dumps(_plain(summary, dialect, url)))
    else:
        _print(Console(soft_wrap=True), summary)
    sys.exit(0 if _has_passed(summary, methods) else 1)


def _chosen(cases: list[Case], methods: tuple[str, ...]) -> list[Case]:
    known = {case.method for case in cases}
    if missing := [name for name in methods if name not in known]:
        raise click.UsageError(f"there is no case of {', '.join(missing)}")
    return [case for case in cases if not methods or case.method in methods]


@contextmanager
def _endpoint(folder: Path, url: str | None, dialect: Dialect) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with served(find_chain(folder), [f"--dialect={dialect}"]) as address:
        yield address


def _has_passed(summary: Summary, methods: tuple[str, ...]) -> bool:
    wanted = any(summary.count(Verdict.NOT_SERVED, name) for name in methods)
    failed = summary.count(Verdict.FAILED)
    return not failed and not wanted and summary.count(Verdict.PASSED) > 0


def _print(console: Console, summary: Summary) -> None:
    table = Table("method", box=None, pad_edge=False)
    for verdict in Verdict:
        table.add_column(verdict.value, justify="right")
    for method in summary.methods:
        table.add_row(method, *(str(summary.count(each, method) or "·") for each in Verdict))
    table.add_row("all", *(str(summary.count(each)) for each in Verdict))
    for line in _details(summary):
        console.print(line, highlight=False, markup=False)
    console.print(table)  # with the total, which stays in view


def _details(summary: Summary) -> Iterator[str]:
    for outcome in summary.outcomes:
        match outcome.verdict:
            case Verdict.FAILED:
                yield f"failed: {outcome.case}"
            case Verdict.PASSED if outcome.remarks:
                yield f"passed in other words: {outcome.case}"
            case _:
                pass
        yield from (f"  {each}" for each in (*outcome.differences, *outcome.remarks))
    for method in summary.methods:
        missing = [
            outcome.case.name
            for outcome in summary.outcomes
            if outcome.case.method == method and outcome.verdict is Verdict.NOT_SERVED
        ]
        if missing:
            why = reason_for(method)
            yield f"not served: {method}: {', '.join(missing)}" + (f" ({why})" if why else "")


def _plain(summary: Summary, dialect: Dialect, url: str | None) -> dict[str, object]:
    return {
        "dialect": dialect,
        "url": url,
        **{each.name.lower(): summary.count(each) for each in Verdict},
        "methods": {
            method: {each.name.lower(): summary.count(each, method) for each in Verdict}
            for method in summary.methods
        },
        "cases": [
            {
                "case": str(each.case),
                "verdict": each.verdict.value,
                "differences": [vars(one) for one in each.differences],
                "remarks": [vars(one) for one in each.remarks],
            }
            for each in summary.outcomes
        ],
    }
