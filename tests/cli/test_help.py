"""The layout of help: sections, types, defaults, and lines that fit the terminal."""

import re
import shlex
from collections.abc import Sequence

import click
from click.testing import CliRunner

from foreblock.cli import main
from foreblock.cli.verb import DescribedArgument, SectionedOption, Verb, VerbGroup
from foreblock.settings import SECTIONS, ServeSettings
from foreblock.settings.declare import declared
from support.each_case import each_case

LONG = ("dev", "serve", "follow", "config")  # those whose --help is not all


def help_of(*words: str, columns: int = 80, option: str = "--help") -> str:
    done = CliRunner().invoke(main, [*words, option], terminal_width=columns)
    assert done.exit_code == 0
    return done.output


def verbs(group: VerbGroup, *prefix: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, command in group.verbs().items():
        inner = verbs(command, *prefix, name) if isinstance(command, VerbGroup) else []
        found += inner or [(*prefix, name)]
    return found


@each_case("words", verbs(main), ids=" ".join)
@each_case("columns", [80, 120])
def test_lines_fit_the_terminal(words: tuple[str, ...], columns: int) -> None:
    for option in ("--help", "--help-all") if words[0] in LONG else ("--help",):
        lines = help_of(*words, columns=columns, option=option).splitlines()
        assert max(map(len, lines)) <= columns


@each_case("words", verbs(main), ids=" ".join)
def test_no_default_and_no_word_is_broken(words: tuple[str, ...]) -> None:
    """Lines may end at hyphens, as in JSON-RPC."""
    between = re.compile(r"[\s-]+")
    text = help_of(*words, option="--help-all" if words[0] in LONG else "--help")
    whole = set(between.split(text))
    command = command_of(words)
    for parameter in command.params:
        _, text = parameter.get_help_record(click.Context(command, show_default=True)) or ("", "")
        assert whole >= set(between.split(text)), parameter.name


@each_case("words", verbs(main), ids=" ".join)
def test_each_argument_is_described(words: tuple[str, ...]) -> None:
    command = command_of(words)
    found = [each for each in command.params if isinstance(each, click.Argument)]
    for each in found:
        assert isinstance(each, DescribedArgument)
        assert each.description.endswith(".")
    assert ("Arguments:" in help_of(*words)) == bool(found)


@each_case("words", verbs(main), ids=" ".join)
def test_examples_use_the_command_and_its_options(words: tuple[str, ...]) -> None:
    command = command_of(words)
    assert isinstance(command, Verb)
    known = {name for each in command.params for name in each.opts} | {"--block-time"}
    for example in command.examples:
        assert f"  {example}\n" in help_of(*words) + "\n"
        assert example.split()[: 1 + len(words)] == ["foreblock", *words]
        assert {each for each in shlex.split(example) if each.startswith("--")} <= known


@each_case("verb", LONG)
def test_the_short_help_has_the_everyday_options_and_names_the_long_one(verb: str) -> None:
    short, every = help_of(verb), help_of(verb, option="--help-all")
    options, known = options_in(short), options_in(every)
    assert set(options) <= set(known)
    assert options[-2:] == ["--help-all", "--help"]
    assert len(options) <= 17
    assert "Examples:" in short
    assert "--body-limit" in known
    assert "--body-limit" not in options
    shown = re.search(r"Show all (\d+) options", short)
    assert shown is not None
    assert int(shown[1]) == len(known) - 2, "all but those of help"


def options_in(text: str) -> list[str]:
    tables = re.split(r"^\S.*:$", text, maxsplit=1, flags=re.MULTILINE)[1]
    return re.findall(r"^  (?:-h, )?(--[\w-]+)", tables, re.MULTILINE)


def command_of(words: Sequence[str]) -> click.Command:
    command: click.Command = main
    for word in words:
        assert isinstance(command, VerbGroup)
        command = command.verbs()[word]
    return command


def test_verbs_stand_in_sections_and_in_one_line_each() -> None:
    _, *lines = help_of().splitlines()
    headings = ["Options", "Run a network", "Query an endpoint", "Stores and feeds"]
    headings += ["Measure and verify", "Set up"]
    assert [line[:-1] for line in lines if line.endswith(":")] == headings
    assert not [line for line in lines if line.endswith("...")]


def test_settings_stand_in_their_sections_with_types_and_defaults() -> None:
    text = help_of("serve", columns=120, option="--help-all")
    headings = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    used = {each.section for each in declared(ServeSettings)}
    assert headings == [*(it for it in SECTIONS if it in used), "Other options", "Examples"]
    assert "  --listen HOST:PORT                Address of the JSON-RPC endpoint" in text
    assert "  --source [store|feed|log|follow]  " in text
    assert "  --feed URL,...  " in text
    assert "[default: 127.0.0.1:8545]" in text


def test_dev_shows_the_default_that_it_replaces() -> None:
    assert "Niceness of workers, 0 to 19.  [default: 5]" in help_of("dev", option="--help-all")


def test_every_option_shows_its_type() -> None:
    for words in verbs(main):
        command = command_of(words)
        for parameter in command.params:
            if isinstance(parameter, SectionedOption) and not parameter.is_flag:
                metavar = parameter.make_metavar(click.Context(command))
                assert metavar not in ("TEXT", "INTEGER", "FLOAT", "VALUE", "PATH"), parameter.name
