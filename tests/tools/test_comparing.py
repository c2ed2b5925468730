"""Parsing of flow output by `make tools`, and its verdicts."""

import subprocess
from pathlib import Path

import pytest

from tools import report
from tools.exceptions import Exemption
from tools.flows import FLOWS, Flow
from tools.outcome import ENDED, Outcome, play, read
from tools.targets import OURS, Running

FLOW = Flow("family", "flow", ("true",))


def test_steps_are_read_from_the_output() -> None:
    found = read("ok deploy\nnoise\nfailed send: no: funds\nok read, twice\n", 1, 2.0)
    assert found == Outcome(("deploy", "read, twice"), {"send": "no: funds"}, 2.0)
    assert not found.is_whole


def test_a_flow_that_ends_badly_without_a_word_has_failed() -> None:
    found = read("ok deploy\nTypeError: oh", 1, 0.0)
    assert found.failed == {ENDED: "exit status 1: ok deploy / TypeError: oh"}


def test_a_flow_without_a_step_has_not_passed() -> None:
    assert not read("", 0, 0.0).is_whole


def test_a_program_is_told_where_the_chain_is() -> None:
    script = 'test -d "$OUT" && for v in $RPC_URL $WS_URL $TARGET $CHAIN_ID; do echo ok $v; done'
    flow = Flow(".", "told", ("sh", "-c", script.replace("$v", "${v%%:*}")), ())
    outcome, _ = play(flow, Running("eth", "http://h:1/eth"))
    assert outcome.passed == ("http", "ws", "eth", "31337")


def test_a_program_that_hangs_is_ended() -> None:
    flow = Flow(".", "hangs", ("sh", "-c", "echo ok begun; exec sleep 1000"), (), seconds=0.2)
    outcome, _ = play(flow, Running("eth", "http://h:1"))
    assert outcome.failed == {ENDED: "not within 0.2 s"}


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (Outcome(("a", "b")), []),
        (Outcome(("a",), {"b": "why"}), [("eth", FLOW, "b", "why")]),
        (Outcome(("a",), {ENDED: "crash"}), [("eth", FLOW, "b", "not reached")]),
    ],
)
def test_what_passes_on_anvil_has_to_pass_here(
    ours: Outcome, expected: list[tuple[str, Flow, str, str]]
) -> None:
    results = {(FLOW, "anvil"): Outcome(("a", "b"), {"c": "no"}), (FLOW, "eth"): ours}
    assert list(report.regressions(results)) == expected


def test_an_exemption_covers_what_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Exemption("eth", "family", "*", "b", "because")
    monkeypatch.setattr(report, "EXEMPTIONS", (row,))
    assert report.excuse("eth", FLOW, "b") == row
    assert report.excuse("like-anvil", FLOW, "b") is None
    results = {
        (FLOW, "anvil"): Outcome(("a", "b"), {}, 1.0),
        (FLOW, "eth"): Outcome(("a",), {"b": "why"}, 2.0),
    }
    assert report.table(results, ["anvil", "eth"]).splitlines()[-1] == (
        "| family | flow | 2 | 1 of 2, 1 excepted |"
    )
    assert report.exceptions(results).splitlines()[-1] == "| eth | family, flow: b | because |"


def test_the_table_is_put_between_the_marks_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", "utf-8")
    report.write(page, "| new |")
    assert page.read_text("utf-8") == f"before\n{report.BEGIN}\n| new |\n{report.END}\nafter\n"


def test_the_contract_is_what_the_compiler_makes_of_its_source() -> None:
    here = Path(__file__).parent
    if not (here / "node_modules" / "solc").is_dir():
        pytest.skip("solc is not installed; `make tools` installs it")
    compiler, vault = here.parent / "clients" / "compile.mjs", here / "contracts" / "Vault"
    command = ["node", str(compiler), f"{vault}.sol", f"{vault}.json", "--check"]
    subprocess.run(command, cwd=here, check=True)


def test_every_flow_has_its_folder() -> None:
    here = Path(__file__).parent
    assert [each for each in FLOWS if not (here / each.family).is_dir()] == []
    assert len({(each.family, each.name) for each in FLOWS}) == len(FLOWS)
    assert OURS == ("like-anvil", "eth")
