"""The layout of help: sections, types, defaults, and lines that fit the terminal."""

import click
from click.testing import CliRunner

from foreblock.cli import main
from foreblock.cli.verb import SectionedOption, VerbGroup
from foreblock.settings import SECTIONS, ServeSettings
from foreblock.settings.declare import declared
from support.each_case import each_case


def help_of(*words: str, columns: int = 80) -> str:
    done = CliRunner().invoke(main, [*words, "--help"], terminal_width=columns)
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
    assert max(map(len, help_of(*words, columns=columns).splitlines())) <= columns


def test_verbs_stand_in_sections_and_in_one_line_each() -> None:
    _, *lines = help_of().splitlines()
    headings = ["Options", "Run a network", "Query an endpoint", "Stores and feeds"]
    headings += ["Measure and verify", "Set up"]
    assert [line[:-1] for line in lines if line.endswith(":")] == headings
    assert not [line for line in lines if line.endswith("...")]


def test_settings_stand_in_their_sections_with_types_and_defaults() -> None:
    text = help_of("serve", columns=120)
    headings = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    used = {each.section for each in declared(ServeSettings)}
    assert headings == [*(each for each in SECTIONS if each in used), "Other options"]
    assert "  --listen HOST:PORT                Address of the JSON-RPC endpoint" in text
    assert "  --source [store|feed|log|follow]  " in text
    assert "  --feed URL,...  " in text
    assert "[default: 127.0.0.1:8545]" in text


def test_dev_shows_the_default_that_it_replaces() -> None:
    assert "Niceness of workers, 0 to 19.  [default: 5]" in help_of("dev")


def test_every_option_shows_its_type() -> None:
    for words in verbs(main):
        command: click.Command = main
        for word in words:
            assert isinstance(command, VerbGroup)
            command = command.verbs()[word]
        for parameter in command.params:
            if isinstance(parameter, SectionedOption) and not parameter.is_flag:
                metavar = parameter.make_metavar(click.Context(command))
                assert metavar not in ("TEXT", "INTEGER", "FLOAT", "VALUE", "PATH"), parameter.name
