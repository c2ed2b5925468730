"""Shared by all verbs: help with sections, options for output, and reports of failures.

Every exception of foreblock ends as one line on standard error and exit code 1, or 2 if the next
start would end in the same way. Nothing else is caught: a traceback is a defect to be reported.
"""

import gc
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Any, Final, NoReturn

import click
from click.shell_completion import CompletionItem

from foreblock.errors import (
    AddressInUse,
    AddressUnusable,
    BadChain,
    BadGenesis,
    BadSetting,
    ForeblockError,
)
from foreblock.secret_urls import redact_urls

_SIGNALLED: Final = 128  # the shell's convention: this plus the signal's number
_ENDING: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
MISCONFIGURED: Final = 2  # click's for a wrong command line; deploy/foreblock.service names it
INTERRUPTED: Final = _SIGNALLED + signal.SIGINT

ARGUMENTS: Final = "Arguments"
OUTPUT: Final = "Output"
REST: Final = ""  # the section of options that name none, which is the last
WIDEST: Final = 34  # columns for options before their help
_KEPT_TOGETHER: Final = re.compile(r"(default:|env var:) (?=[^ ])")  # with the value behind it
_NO_BREAK: Final = "\u00a0"
_SHOW_ALL: Final = f"{__name__}.show_all"  # in the context's meta data, whose keys are modules'
_HELP_OPTIONS: Final = 2  # the last parameters of a verb with a short help

_ADDRESSES: Final = ("port", "listen", "base_port", "upstream_listen")  # options that name one

FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
DIRECTORY: Final = click.Path(file_okay=False, path_type=Path)
STORE: Final = click.Path(exists=True, file_okay=False, path_type=Path)

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


class SectionedOption(click.Option):
    """An option that belongs to a section of the help."""

    def __init__(self, *arguments: Any, section: str = REST, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        self.section: Final = section


class DescribedArgument(click.Argument):
    """An argument with a line in the help; click describes none before 8.5."""

    def __init__(self, *arguments: Any, description: str, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        self.description: Final = description
        self.section: Final = ARGUMENTS

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.make_metavar(ctx), self.description


class Verb(click.Command):
    """A command whose help lists options by section, with types and defaults, and examples.

    With `everyday`, names of options, --help lists those alone, and --help-all the others too.
    """

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401, click's
        everyday: Sequence[str] = (),
        examples: Sequence[str] = (),
        **options: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **options)
        self.examples: Final = examples
        self._everyday: Final = everyday
        if everyday:
            count = sum(isinstance(each, click.Option) for each in self.params)
            row = f"Show all {count} options and exit."
            self.params.append(
                click.Option(
                    ["--help-all"], is_flag=True, is_eager=True, expose_value=False,
                    callback=_show_all, help=row,
                )
            )  # fmt: skip

    def get_help(self, ctx: click.Context) -> str:
        """The help; spaces that kept words on one line are ordinary ones again."""
        return super().get_help(ctx).replace(_NO_BREAK, " ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, then the sections in the order of their first options."""
        sections: dict[str, list[tuple[str, str]]] = {ARGUMENTS: []}
        for parameter in self._shown(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None:
                text = _KEPT_TOGETHER.sub(rf"\1{_NO_BREAK}", row[1])
                section = REST if self._is_short(ctx) else getattr(parameter, "section", REST)
                if isinstance(parameter, click.Argument):
                    section = ARGUMENTS
                sections.setdefault(section, []).append((row[0], text))
        rest = sections.pop(REST, [])
        found = {heading: rows for heading, rows in sections.items() if rows}
        found["Other options" if found.keys() - {ARGUMENTS} else "Options"] = rest
        _write_sections(formatter, found)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for each in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{each}\n")

    def _is_short(self, ctx: click.Context) -> bool:
        return bool(self._everyday) and _SHOW_ALL not in ctx.meta

    def _shown(self, ctx: click.Context) -> Sequence[click.Parameter]:
        """The parameters in the help; the everyday ones come in their order."""
        every = self.get_params(ctx)
        if not self._is_short(ctx):
            return every
        by_name = {each.name: each for each in every}
        kept = [each for each in every if isinstance(each, click.Argument)]
        return [*kept, *(by_name[each] for each in self._everyday), *every[-_HELP_OPTIONS:]]


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001, click's
    if value:
        ctx.meta[_SHOW_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


class VerbGroup(click.Group):
    """A group whose help lists verbs by section, and which imports them when they are needed."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        self._sections: dict[str, Mapping[str, str]] = {}
        self._modules: dict[str, str] = {}

    def add_section(self, heading: str, modules: Mapping[str, str]) -> None:
        """Add verbs under a heading: their names, each with its module of this package."""
        self._sections[heading] = modules
        self._modules |= modules

    def verbs(self) -> dict[str, click.Command]:
        """All verbs by name."""
        return {name: _verb_of(module, name) for name, module in self._modules.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002, click's signature
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        module = self._modules.get(cmd_name)
        return None if module is None else _verb_of(module, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; one that is mistyped is refused with those that are similar."""
        if not ctx.resilient_parsing and args[0] not in self._modules and args[0][:1] != "-":
            from foreblock.primitives import did_you_mean  # noqa: PLC0415, only when it fails

            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], self._modules)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Names without their help, which would import every verb at each TAB."""
        verbs = [CompletionItem(name) for name in self._modules if name.startswith(incomplete)]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the sections in the order in which they were added."""
        room = formatter.width - 20
        verbs = self.verbs()
        rows = {
            heading: [(name, verbs[name].get_short_help_str(room)) for name in modules]
            for heading, modules in self._sections.items()
        }
        _write_sections(formatter, rows)


def _verb_of(module: str, name: str) -> click.Command:
    collects = gc.isenabled()
    gc.disable()  # modules create no garbage; collecting meanwhile takes a tenth longer
    try:
        found = getattr(import_module(f"foreblock.cli.{module}"), name + "_" * iskeyword(name))
    finally:
        if collects:
            gc.enable()
    assert isinstance(found, click.Command)
    return found


def _write_sections(
    formatter: click.HelpFormatter, sections: Mapping[str, Sequence[tuple[str, str]]]
) -> None:
    """Write tables whose second columns are aligned across sections."""
    firsts = [first for rows in sections.values() for first, _ in rows]
    width = max((len(first) for first in firsts if len(first) <= WIDEST), default=0)
    for heading, rows in sections.items():
        with formatter.section(heading):
            formatter.write_dl([(first.ljust(width), text) for first, text in rows], col_max=width)


def verb(
    name: str | None = None, *, everyday: Sequence[str] = (), examples: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Verb]:
    """Make a function a command with sections."""
    return click.command(name, cls=Verb, everyday=everyday, examples=examples)


def argument(name: str, help: str, **options: Any) -> Decorator:  # noqa: ANN401
    """Add an argument with its line in the help."""
    return click.argument(name, cls=DescribedArgument, description=help, **options)


def option(*names: str, section: str = REST, **options: Any) -> Decorator:  # noqa: ANN401
    """Add an option to a section of the help."""
    return click.option(*names, cls=SectionedOption, section=section, **options)


def in_section(section: str) -> Callable[..., Decorator]:
    """`option` for one section."""
    return partial(option, section=section)


def json_option(help: str = "Print one JSON object.") -> Decorator:
    """Add `--json`, passed as `as_json`."""
    return option("--json", "as_json", is_flag=True, help=help, section=OUTPUT)


@contextmanager
def failing_in_one_line() -> Iterator[None]:
    """Turn errors of foreblock and the system into one line and an exit code."""
    try:
        yield
    except AddressInUse as failure:
        stop(f"{failure}{_other_address()}", MISCONFIGURED)
    except (BadSetting, BadChain, BadGenesis, AddressUnusable) as failure:
        stop(redact_urls(str(failure)), MISCONFIGURED)
    except (ForeblockError, OSError) as failure:
        stop(redact_urls(str(failure)), 1)


def _other_address() -> str:
    """How this command listens elsewhere, to follow the message of an error."""
    context = click.get_current_context(silent=True)
    names = [] if context is None else [each.name for each in context.command.params]
    options = ["--" + each.replace("_", "-") for each in _ADDRESSES if each in names]
    if options[:1] == ["--port"]:
        return "; choose another port with --port"
    return f"; choose another with {' or '.join(options)}" if options else ""


@contextmanager
def unwinding_on_signals() -> Iterator[None]:
    """Make the first signal to end unwind the stack, so that child processes are stopped.

    The signals after it are ignored. The exit code is that of a shell: 128 plus the number.
    """
    wanted = [each for each in _ENDING if signal.getsignal(each) is not signal.SIG_IGN]

    def end(number: int, _: object) -> NoReturn:
        for each in wanted:
            signal.signal(each, signal.SIG_IGN)
        sys.exit(_SIGNALLED + number)

    before = {each: signal.signal(each, end) for each in wanted}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def stop(message: str, code: int) -> NoReturn:
    """Print one line on standard error and exit."""
    click.echo(f"foreblock: {message}", err=True)
    sys.exit(code)


def size(count: float) -> str:
    """A number of bytes for people."""
    for unit, bytes_ in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= bytes_:
            return f"{count / bytes_:.1f} {unit}"
    return f"{count / 1024:.0f} KiB"
