"""The docs are correct: examples run, and tables are complete."""

import inspect
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click

from foreblock import errors
from foreblock.cli import main
from foreblock.cli.verb import VerbGroup
from foreblock.methods import make_table
from foreblock.settings import EverySetting, Settings
from foreblock.settings.declare import declared
from support.each_case import each_case
from support.rpc_pages import family_pages, rpc_text
from support.servers.asking import Asker
from support.servers.long_work import scheduler
from website.markdown_links import anchor

ERRORS = [
    name
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, errors.ForeblockError)
]


OF_OTHER_CHAINS = (
    "eth_simulateV1",
    "eth_sendRawTransaction",
    "eth_sendRawTransactionSync",
    "eth_fillTransaction",
    "eth_subscribe",
    "eth_unsubscribe",
    "eth_getFilterChanges",
    "eth_getFilterLogs",
    "debug_traceTransaction",
    "debug_traceBlockByHash",
    "debug_executionWitnessByBlockHash",
    "debug_executionWitnessByHash",
    "trace_rawTransaction",
    "trace_replayTransaction",
    "ots_searchTransactionsBefore",
    "ots_searchTransactionsAfter",
)


def commands(group: VerbGroup, prefix: str = "foreblock") -> dict[str, click.Command]:
    """All commands by full name."""
    found: dict[str, click.Command] = {}
    for name, command in group.verbs().items():
        found[f"{prefix} {name}"] = command
        if isinstance(command, VerbGroup):
            found |= commands(command, f"{prefix} {name}")
    return found


@each_case("verb", commands(main))
def test_every_verb_and_option_is_documented(checkout: Path, verb: str) -> None:
    sections = (checkout / "docs" / "cli.md").read_text("utf-8").split("\n## ")
    section = next((each for each in sections if each.startswith(f"`{verb}`\n")), None)
    assert section is not None, f"docs/cli.md has no section for {verb}"
    if isinstance(commands(main)[verb], VerbGroup):
        return
    if "[settings](settings.md) has them all" in section:
        section += "".join(
            f"`{each.flag}`" for each in declared(EverySetting)
        )  # tests/settings/test_settings.py
    for parameter in commands(main)[verb].params:
        if isinstance(parameter, click.Argument):
            assert parameter.make_metavar(click.Context(commands(main)[verb])) in section
        else:
            for option in parameter.opts:
                assert f"`{option}" in (sections[0] if option == "--help-all" else section)


def test_every_documented_option_exists(checkout: Path) -> None:
    text = (checkout / "docs" / "cli.md").read_text("utf-8")
    known = {
        option for command in commands(main).values() for p in command.params for option in p.opts
    }
    documented = set(re.findall(r"^- `(--[a-z-]+)", text, flags=re.MULTILINE))
    assert documented <= known | {"--help", "--version"}


def documented_errors(checkout: Path) -> str:
    pages = ("errors.md", "design/exceptions.md")
    return "".join((checkout / "docs" / page).read_text("utf-8") for page in pages)


@each_case("name", ERRORS)
def test_every_exception_is_documented(checkout: Path, name: str) -> None:
    text = documented_errors(checkout)
    forms = (f"| `{name}` |", f"- `{name}`: ", f"## `{name}`: ")
    assert any(form in text for form in forms) or name == "ForeblockError"


def test_every_documented_exception_exists(checkout: Path) -> None:
    text = documented_errors(checkout)
    assert set(re.findall(r"^(?:\| |- |## )`([A-Z]\w+)`", text, flags=re.MULTILINE)) <= set(ERRORS)


def test_every_method_is_documented_with_a_request_that_is_answered(preconf: Asker) -> None:
    text = rpc_text()
    sections = dict(
        re.findall(r"^## `([\w.]+)`\n(.*?)(?=^#{1,2} |\Z)", text, flags=re.DOTALL | re.MULTILINE)
    )
    assert set(sections) == set(make_table(Settings(), scheduler(1)).functions)
    for name, section in sections.items():
        assert f"| `{name}` |" in text, f"{name} is not in the table"
        request = re.search(r"^--> (.*)", section, re.MULTILINE)
        assert request is not None, f"{name} has no example"
        assert json.loads(request[1])["method"] == name
        answer = json.loads(preconf.reply(request[1].encode()).body)
        # These run on a chain with their prerequisites, or report the missing one.
        assert "result" in answer or name in OF_OTHER_CHAINS, answer


def runnable(text: str) -> list[tuple[str, list[str]]]:
    """The runnable commands of the docs, each with its documented output."""
    blocks = re.findall(r"<!-- run -->\n```console\n(.*?)```", text, flags=re.DOTALL)
    examples = []
    for block in blocks:
        command, *output = block.splitlines()
        examples.append((command.removeprefix("$ "), output))
    return examples


def measured(line: str) -> str:
    """A line without the figures that depend on the machine."""
    return re.sub(r"in [\d.]+ s \(\d+ Mgas/s\)", "in … s (… Mgas/s)", line)


def test_readme_examples_run_and_print_what_they_show(checkout: Path, tmp_path: Path) -> None:
    shutil.copytree(checkout / "examples", tmp_path / "examples")
    examples = runnable((checkout / "README.md").read_text("utf-8"))
    assert examples, "the README shows nothing"
    for command, output in examples:
        program, *arguments = shlex.split(command)
        assert program == "foreblock"
        done = subprocess.run(
            [sys.executable, "-m", "foreblock", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert list(map(measured, done.stdout.splitlines())) == list(map(measured, output))


def test_measured_facts_of_the_readme_stand_where_they_link_to(checkout: Path) -> None:
    text = (checkout / "README.md").read_text("utf-8")
    lines = "\n".join(re.findall(r".*(?:virtual cores:|checker judged).*", text))
    facts = re.findall(r"([^:;)]+)\[[^]]+\]\((docs/\S+)#([^)]+)\)", lines)
    assert len(facts) == 3
    for fact, name, heading in facts:
        page = (checkout / name).read_text("utf-8")
        (section,) = (
            each for each in re.split(r"^(?=#+ )", page, flags=re.MULTILINE)
            if anchor(each.split("\n")[0].lstrip("# ")) == heading
        )  # fmt: skip
        figures = re.findall(r"\d[\d.,]*\d|\d", fact)
        assert figures
        for figure in figures:
            assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d])", section), (fact, figure)


def test_every_make_verb_of_the_docs_exists(checkout: Path) -> None:
    makefile = (checkout / "Makefile").read_text("utf-8")
    verbs = set(re.findall(r"^([a-z]+):.*##", makefile, flags=re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (checkout / name).read_text("utf-8")
        assert set(re.findall(r"(?:`|\$ )make ([a-z]+)", text)) <= verbs


def test_every_file_that_the_docs_name_exists(checkout: Path) -> None:
    for path in [*checkout.glob("*.md"), *checkout.glob("docs/**/*.md")]:
        for name in re.findall(
            r"`((?:docs|tests|crates|examples|python)/[\w./-]+)`", path.read_text("utf-8")
        ):
            assert (checkout / name).exists(), f"{path.name} names {name}"


def test_prose_has_one_sentence_per_line(checkout: Path) -> None:
    for path in [*checkout.glob("*.md"), *checkout.glob("docs/*.md"), *family_pages().values()]:
        text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
        for line in text.splitlines():
            if line and line[0].isalpha():
                assert line[-1] in ".:;,?", f"{path.name}: {line}"


def test_what_the_comparison_says_is_lacking_is_lacking(checkout: Path) -> None:
    text = (checkout / "docs" / "comparison.md").read_text("utf-8")
    lacking = text.partition("## What foreblock lacks")[2]
    served = make_table(Settings(), scheduler(1)).functions
    prefixes = ["engine_", *re.findall(r"`(\w+_)`", lacking)]
    assert len(prefixes) == 4
    assert not [name for name in served if name.startswith(tuple(prefixes))]
