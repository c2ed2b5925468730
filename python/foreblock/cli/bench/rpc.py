"""`foreblock bench rpc`: the cost of a request, beside other servers."""

import json
import tempfile
from pathlib import Path

import click

from foreblock.bench.measure import describe
from foreblock.bench.rpc.answers import Answers, Comparison, answer, cores
from foreblock.bench.rpc.deliveries import DELIVERIES, Delivered, deliveries
from foreblock.bench.rpc.instructions import count
from foreblock.bench.rpc.peers import PEERS, find
from foreblock.bench.rpc.questions import Question, questions
from foreblock.bench.rpc.rounds import Bench
from foreblock.cli.bench.rpc_report import (
    console_of_tables,
    plain,
    plain_counts,
    print_counts,
    print_tables,
)
from foreblock.cli.progress import STEP_SECONDS, progress
from foreblock.cli.verb import (
    DIRECTORY,
    FILE,
    failing_in_one_line,
    in_section,
    json_option,
    unwinding_on_signals,
    verb,
)
from foreblock.errors import InvalidArgument

_NAMES = [*(question.name for question in questions()), *(row.name for row in DELIVERIES)]

servers, per_round = in_section("Servers"), in_section("Rounds")


@verb()
@servers("--peers", type=DIRECTORY, default=Path("build/peers"),
         help="Directory in which bench/peers.sh installed the other servers.")  # fmt: skip
@servers("--peer", type=click.Choice(PEERS), multiple=True,
         help="Only this other server; repeatable.")  # fmt: skip
@servers("--before", type=FILE, help="`foreblock` command of another checkout, to compare with.")
@servers("--one-core", is_flag=True, help="Restrict servers to one core from their start, so that "
         "they start fewer threads.")  # fmt: skip
@per_round("--rounds", metavar="N", default=5, help="Valid rounds for each server and question.")
@per_round("--seconds", metavar="SECONDS", default=2, help="Length of a round.")
@per_round("--only", metavar="QUESTION", type=click.Choice(_NAMES), multiple=True,
           help="Only this question, as named in the tables; repeatable.")  # fmt: skip
@per_round("--instructions", is_flag=True, help="Count instructions of the worker under valgrind "
           "instead of measuring time.")  # fmt: skip
@json_option()
def rpc(  # noqa: PLR0913, one for each option
    *,
    peers: Path,
    peer: tuple[str, ...],
    before: Path | None,
    rounds: int,
    seconds: int,
    only: tuple[str, ...],
    one_core: bool,
    instructions: bool,
    as_json: bool,
) -> None:
    """Measure the cost of requests, beside other servers.

    Prints server CPU time per request and requests per second. All servers have the same chain, run
    on one core and are loaded by wrk from another. They start with their usual number of threads,
    unless --one-core is given. Rounds alternate between servers; a round in which a server got less
    than 0.9 of its core is discarded and counted.

    With --before, another build is measured in the same rounds, and no other server unless named
    by --peer; no question may cost more than 1.03 times what it costs there.

    CPU time varies by tens of percent with what else the machine does. With --instructions, the
    worker of this build and that of --before run under valgrind, and the table has the instructions
    that a request takes outside the kernel; two runs agree within half a percent, of
    simulations within two.

    The last table is about subscriptions: how soon a notification arrives after the first reply
    that shows the same, and after the transaction that causes it.
    """
    asked = [each for each in questions() if not only or each.name in only]
    if instructions:
        _instructions(asked, peer, before and before.absolute(), as_json=as_json)
        return
    rows = [each for each in DELIVERIES if not only or each.name in only]
    with (
        failing_in_one_line(),
        unwinding_on_signals(),
        tempfile.TemporaryDirectory(prefix="foreblock-bench-") as folder,
    ):
        machine = describe(Path(folder))
        bench = _bench(peers, seconds, narrow=one_core)
        comparison = Comparison(
            peers, peer or (() if before else PEERS), before and before.absolute()
        )
        places = (comparison, Path(folder))
        found, delivered = Answers({}), list[Delivered]()
        try:
            with progress("bench rpc", STEP_SECONDS) as report:
                for answers in answer(bench, asked, rounds, places, report) if asked else ():
                    found = answers
            with progress("bench rpc, notifications", STEP_SECONDS) as report:
                for figures in deliveries(bench, rows, rounds, places, report):
                    delivered = figures
        except SystemExit:
            if found.cells:
                click.echo("foreblock: interrupted; these are partial results", err=True)
                _print(machine, bench, asked, found, delivered, as_json=as_json)
            raise
    _print(machine, bench, asked, found, delivered, as_json=as_json)


def _print(
    machine: dict[str, str],
    bench: Bench,
    asked: list[Question],
    found: Answers,
    delivered: list[Delivered],
    *,
    as_json: bool,
) -> None:
    if as_json:
        click.echo(json.dumps(plain(machine, bench, asked, found, delivered)))
    else:
        print_tables(console_of_tables(), machine, bench, asked, found, delivered)


def _instructions(
    asked: list[Question], peer: tuple[str, ...], before: Path | None, *, as_json: bool
) -> None:
    """Count instead of measuring time."""
    with (
        failing_in_one_line(),
        unwinding_on_signals(),
        tempfile.TemporaryDirectory(prefix="foreblock-bench-") as folder,
        progress("bench rpc", STEP_SECONDS) as report,
    ):
        if peer or not asked:
            raise InvalidArgument("--instructions counts requests to builds of foreblock only")
        machine = describe(Path(folder))
        found = count(asked, before, Path(folder), report)
    if as_json:
        click.echo(json.dumps(plain_counts(machine, asked, found)))
    else:
        print_counts(console_of_tables(), machine, asked, found)


def _bench(peers: Path, seconds: int, *, narrow: bool) -> Bench:
    wrk = find("wrk", peers)
    if wrk is None:
        raise InvalidArgument("wrk is not on this machine; bench/peers.sh installs it")
    server, client = cores()
    return Bench(wrk, server, client, seconds, narrow=narrow)
