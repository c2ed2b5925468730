"""The parts of `foreblock bench rpc` that need no other server."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn
from unittest import mock

import pytest
from click.testing import CliRunner

from foreblock.bench.measure import Figure
from foreblock.bench.rpc import chain, peers
from foreblock.bench.rpc.answers import Answers, Cell
from foreblock.bench.rpc.peers import cpu_seconds, family, resident_bytes
from foreblock.bench.rpc.questions import Bound, Question, fits, questions
from foreblock.bench.rpc.rounds import Bench, BenchRound, LoadResult, alone, parse_wrk, wrk_script
from foreblock.cli import main
from foreblock.cli.bench import engine as engine_command
from foreblock.cli.bench import rpc as rpc_command
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.service.running import HOST, free_port, started
from support.each_case import each_case
from support.servers.asking import asker


def test_every_question_has_a_peer_to_be_held_against() -> None:
    for question in questions():
        assert {"anvil", "geth"} <= set(question.bounds)
        assert all(json.loads(body) for body in question.bodies)


def test_distinct_questions_differ_in_every_request() -> None:
    distinct = [each for each in questions() if each.distinct]
    assert {each.name for each in distinct} == {
        "balance, distinct", "call, distinct", "batch, distinct", "simulate, distinct",
        "receipt, distinct",
    }  # fmt: skip
    for question in distinct:
        assert len(set(question.bodies)) == len(question.bodies) >= 64


def test_answers_are_checked() -> None:
    named = {each.name: each for each in questions()}
    balance, block, batch = named["balance"], named["block, hashes"], named["batch, distinct"]
    full, slots = named["block, 200 full transactions"], named["simulate, 1,000 overridden slots"]
    assert fits(balance, {"result": balance.expected})
    assert not fits(balance, {"result": "0x0"})
    assert not fits(balance, {"error": {}})
    assert fits(block, {"result": {"transactions": ["0x"]}})
    assert fits(full, {"result": {"transactions": [{}] * chain.TRANSFERS}})
    assert not fits(full, {"result": {"transactions": []}})
    assert isinstance(batch.expected, list)
    items = [{"id": at, "result": each} for at, each in enumerate(batch.expected, 1)]
    assert fits(batch, items[::-1]), "servers may answer a batch in any order"
    assert not fits(batch, items[1:])
    call = {"status": "0x1", "returnData": "0x" + f"{1000:064x}", "logs": []}
    assert fits(slots, {"result": [{"calls": [call]}]})
    assert not fits(slots, {"result": [{"calls": [call | {"status": "0x0"}]}]})
    assert not fits(slots, {"error": {}})


def test_every_question_is_answered_rightly_by_this_service(tmp_path: Path) -> None:
    genesis = tmp_path / "genesis.json"
    genesis.write_bytes(chain.genesis())
    import_files(genesis, chain.BLOCKS, tmp_path / "store", None, lambda _: None)
    ledger = Ledger.open(str(tmp_path / "store"))
    with asker(ledger) as client:
        for question in questions():
            answer = json.loads(client.reply(question.bodies[0]).body)
            assert fits(question, answer), question.name
    ledger.close()


def test_one_body_is_repeated_and_several_go_in_turn() -> None:
    assert 'wrk.body = [==[{"id":1}]==]' in wrk_script([b'{"id":1}'])
    assert "request = function" not in wrk_script([b"{}"])
    assert "[==[1]==],\n[==[2]==]" in wrk_script([b"1", b"2"])


def test_what_wrk_prints_is_read() -> None:
    line = '{"requests":1000,"duration":2000000,"failed":3,"p50":11,"p99":22}'
    assert parse_wrk(f"Running 2s test\n\n{line}\n") == LoadResult(1000, 2.0, 3, 11, 22)


def test_long_answers_fit_into_the_configuration_of_nginx(tmp_path: Path) -> None:
    long = json.dumps({"result": "ab" * 10_000}).encode()
    text = peers.nginx_configuration(1, tmp_path, {0: b'{"id":1}', 3: long})
    assert "location = /0 {  return 200 '{\"id\":1}'; }" in text
    literals = text.split("'")[1::2]
    assert max(map(len, literals)) <= peers.NGINX_LITERAL
    assert "".join(literals[1:]) == long.decode()


def cell(*costs: float, share: float = 1.0) -> Cell:
    return Cell([BenchRound(cost, 1e6 / cost, share, 0.0, 1, 2, 0) for cost in costs])


def test_rounds_without_the_core_are_left_out() -> None:
    mixed = Cell([*cell(10, 12, 20).rounds, *cell(99, share=0.5).rounds])
    assert (mixed.cpu_us, mixed.spread, mixed.clean) == (12, (10, 20), True)


def test_without_a_good_round_all_are_shown_and_marked() -> None:
    busy = cell(10, 20, share=0.5)
    assert (busy.cpu_us, busy.clean) == (15, False)


@pytest.mark.parametrize(("ours", "verdict"), [(3.9, "aim met"), (4.5, "must met"), (6, "missed")])
def test_ratios_are_held_against_their_bounds(ours: float, verdict: str) -> None:
    question = Question("q", (b"{}",), bounds={"anvil": Bound(0.5, 0.4), "geth": Bound(0.2)})
    found = Answers({}, {("q", "foreblock"): cell(ours), ("q", "anvil"): cell(10.0)})
    (ratio,) = found.ratios([question])
    assert ratio.value == pytest.approx(ours / 10)
    assert ratio.verdict == verdict


def test_family_and_its_cpu_time() -> None:
    nested = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen(
        [sys.executable, "-c", nested], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as parent:
        while len(family(parent.pid)) < 2:
            os.sched_yield()
        processes = family(parent.pid)
        assert processes[0] == parent.pid
        assert cpu_seconds(processes) >= 0
        assert resident_bytes(processes) > 1_000_000
        parent.communicate(b"\n")
    assert cpu_seconds(processes) == 0


def test_programs_are_found_in_the_folder_first(tmp_path: Path) -> None:
    assert peers.find("no-such-program", tmp_path) is None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").touch()
    assert peers.find("sh", tmp_path) == tmp_path / "bin" / "sh"
    assert peers.find("sh", tmp_path / "elsewhere") is not None


def test_memory_is_compared_after_the_first_round_of_each_question_and_at_the_end() -> None:
    def rounds(*seen: tuple[int, int]) -> Cell:
        return Cell([BenchRound(1, 1, 1, 0, 1, 1, 0, 10, size, ended) for ended, size in seen])

    cells = {
        ("a", peers.FOREBLOCK): rounds((1, 100), (4, 300)),
        ("b", peers.FOREBLOCK): rounds((2, 200), (5, 210)),
        ("a", "anvil"): rounds((3, 9), (6, 9)),
    }
    assert Answers({}, cells).memory() == ((20, 200), (40, 210))
    once = {key: Cell(cell.rounds[:1]) for key, cell in cells.items()}
    assert Answers({}, once).memory() is None


# A server that answers any request; it ends with its session.
SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell starts background jobs with SIGINT ignored, and nohup with SIGHUP."""
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    hang_up = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGHUP, hang_up)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_all_servers_also_stopped_ones(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def measure(*_given: object) -> NoReturn:
        """Stop one of two servers, as during a round of the other, and receive a signal."""
        with ExitStack() as stack:
            for _ in range(2):
                port = free_port()
                command = [sys.executable, "-c", SERVER, str(port)]
                begun.append(stack.enter_context(started(command, f"http://{HOST}:{port}")))
            servers = [peers.Server("", each.pid, "", "") for each in begun]
            stack.enter_context(alone(servers[0], servers))
            signal.raise_signal(number)
        raise AssertionError("the signal was ignored")

    monkeypatch.setattr(rpc_command, "_bench", lambda *_, **__: None)
    monkeypatch.setattr(rpc_command, "answer", measure)
    before = signal.getsignal(number)
    done = CliRunner().invoke(main, ["bench", "rpc"])
    assert done.exit_code == 128 + number
    assert [each.poll() is None for each in begun] == [False, False]
    assert signal.getsignal(number) is before


@pytest.mark.usefixtures("interruptible")
@each_case("form", [(), ("--json",)])
def test_a_signal_leaves_the_results_of_the_rounds_before_it(form: tuple[str, ...]) -> None:
    def measure(*_given: object) -> Iterator[Answers]:
        yield Answers({"foreblock": "1"}, {("balance", "foreblock"): cell(7.25)})
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("the signal was ignored")

    bench = Bench(Path("wrk"), 0, 1, 2.0)
    with (
        mock.patch.object(rpc_command, "_bench", return_value=bench),
        mock.patch.object(rpc_command, "answer", measure),
    ):
        done = CliRunner().invoke(main, ["bench", "rpc", "--only", "balance", *form])
    assert done.exit_code == 128 + signal.SIGTERM
    assert done.stderr == "foreblock: interrupted; these are partial results\n"
    if form:
        (figure,) = json.loads(done.stdout)["figures"]
        assert (figure["server"], figure["cpu_us"]) == ("foreblock", 7.25)
    else:
        assert "7.2 (7.2 to 7.2; 1)" in done.stdout


@pytest.mark.usefixtures("interruptible")
def test_a_signal_leaves_the_figures_of_the_engine_before_it() -> None:
    def measure(*_given: object) -> Iterator[Figure | str]:
        yield Figure("reads", "/s", [123.0])
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the signal was ignored")

    with mock.patch.object(engine_command, "answers", measure):
        done = CliRunner().invoke(main, ["bench", "engine", "--json"])
    assert done.exit_code == 128 + signal.SIGINT
    (figure,) = json.loads(done.stdout)["answers"]
    assert (figure["question"], figure["median"]) == ("reads", 123.0)
