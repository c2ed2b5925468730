"""docs/python-tutorial.md and docs/from-anvil-in-pytest.md: their programs and tests run."""

import re

import pytest
import structlog

from conftest import CHECKOUT
from foreblock import DevChain
from support.each_case import each_case
from support.plugin_runs import run_pytest

pytest_plugins = ["pytester"]

TUTORIAL = (CHECKOUT / "docs" / "python-tutorial.md").read_text("utf-8")
PROGRAMS = re.findall(
    r"<!-- run -->\n```python\n(.*?)```\n\n```text\n(.*?)```", TUTORIAL, re.DOTALL
)


@each_case("program, shown", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program_prints_what_the_tutorial_shows(
    program: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    structlog.reset_defaults()  # as in a process of its own
    exec(compile(program, "python-tutorial.md", "exec"), {})  # noqa: S102, it is in this checkout
    assert capsys.readouterr().out == shown


def test_the_tests_of_the_tutorial_find_the_shop_that_trusts(pytester: pytest.Pytester) -> None:
    trusting, tests, careful, over_http = re.findall(
        r"^`(\w+\.py)`:\n\n```python\n(.*?)```", TUTORIAL, re.DOTALL | re.MULTILINE
    )
    for name, text in (trusting, tests):
        (pytester.path / name).write_text(text, "utf-8")
    done = run_pytest(pytester, "-q")
    done.assert_outcomes(passed=2, failed=1)
    (shown,) = re.findall(r"```text\n(E .*?)```", TUTORIAL, re.DOTALL)
    done.stdout.fnmatch_lines([line.replace("…", "*") for line in shown.splitlines()])
    for name, text in (careful, over_http):
        (pytester.path / name).write_text(text, "utf-8")
    run_pytest(pytester).assert_outcomes(passed=4)


def test_the_suite_without_anvil_passes(pytester: pytest.Pytester) -> None:
    page = (CHECKOUT / "docs" / "from-anvil-in-pytest.md").read_text("utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    pytester.makepyfile(program)
    run_pytest(pytester).assert_outcomes(passed=5)


def test_what_is_typed_instead_of_anvil_exists() -> None:
    page = (CHECKOUT / "docs" / "from-anvil-in-pytest.md").read_text("utf-8")
    typed = "\n".join(re.findall(r"^\| .* \| (.*) \|$", page, re.MULTILINE))
    used = re.sub(r"@pytest\.mark\.chain\(.*?\)", "", typed)
    methods = set(re.findall(r"\bchain\.(\w+)", used))
    assert {"seal", "advance", "deal_erc20", "serve"} <= methods
    assert [each for each in methods if not hasattr(DevChain, each)] == []
    markers = re.findall(r"@pytest\.mark\.chain\((.*?)\)", typed)
    assert len(markers) == 4
    for settings in markers:
        eval(f"DevChain({settings})").close()  # noqa: S307, it is in this checkout
