"""The heavy suites exist, and docs/checked.md has a row for each."""

from checks import CHECKOUT, CHECKS, PAGE, Amount, outcome, page, recorded


def test_page_has_a_row_for_each_suite() -> None:
    text = PAGE.read_text("utf-8")
    assert page(recorded(text)) == text


def test_programs_exist() -> None:
    commands = [
        command for check in CHECKS.values() for command in check.commands(Amount(1, check.count))
    ]
    paths = [word for command in commands for word in command.words if word.startswith("tests/")]
    assert [path for path in paths if not (CHECKOUT / path).exists()] == []


def test_results_survive_a_partial_run() -> None:
    results = {
        name: (outcome(check, code % 3, 60, "1 min"), "`abc`")
        for code, (name, check) in enumerate(CHECKS.items())
    }
    assert recorded(page(results)) == results


def test_only_a_suite_that_says_so_can_be_unavailable() -> None:
    """make exits with 2 for every failure."""
    assert "failed" in outcome(CHECKS["clients"], 2, 60, "1 min")
    assert "cannot run" in outcome(CHECKS["follow"], 2, 60, "1 min")
