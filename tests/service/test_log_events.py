"""docs/logs.md has every logged event, with its level and its fields."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "foreblock"
MAY_LOG = re.compile(r"\b(log|said)\.|\bEnd\(")
LEVELS = ("debug", "info", "warning", "error", "exception")
# Keywords of the logger itself: a traceback is the field `exception`.
TRACEBACK = "exc_info"


class Event(NamedTuple):
    """One kind of event."""

    name: str
    level: str
    fields: tuple[str, ...]


def names(node: ast.expr) -> Iterator[str]:
    """The possible names of an expression."""
    match node:
        case ast.Constant(value=str(name)):
            yield name
        case ast.IfExp(body=body, orelse=other):
            yield from names(body)
            yield from names(other)
        case _:
            pass


def events_of(source: str) -> Iterator[Event]:
    """The events that a module logs, and those that it passes on for logging (`End`)."""
    tree = ast.parse(source)
    given = iter(list(facts(tree)))
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name("log" | "said"), attr=level), args=[first, *_]
            ) if level in LEVELS:
                keywords = [each.arg for each in node.keywords if each.arg]
                fields = ["exception" if each == TRACEBACK else each for each in keywords]
                if level == "exception":
                    fields.append("exception")
                for name in names(first):
                    yield Event(name, level.replace("exception", "error"), tuple(sorted(fields)))
            case ast.Call(func=ast.Name("End"), args=[ast.Constant(value=str(name)), *_]):
                yield Event(name, "warning", tuple(sorted(["name", *next(given)])))
            case _:
                pass


def facts(tree: ast.AST) -> Iterator[list[str]]:
    """The keys of each mapping named `facts`, in order."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[ast.Name("facts")], value=ast.Dict(keys=keys))
                | ast.AnnAssign(target=ast.Name("facts"), value=ast.Dict(keys=keys))
            ):
                yield [str(key.value) for key in keys if isinstance(key, ast.Constant)]
            case _:
                pass


@functools.cache
def logged() -> frozenset[Event]:
    sources = (path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py")))
    logging = (source for source in sources if MAY_LOG.search(source))
    return frozenset(event for source in logging for event in events_of(source))


def documented(page: str) -> list[Event]:
    """The rows of all tables: event, level, fields, meaning."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return [
        Event(name.strip("`"), level, tuple(sorted(fields.replace("`", "").split(", "))))
        for name, level, fields, *_ in rows
    ]


def test_every_event_is_documented_as_it_is_logged(checkout: Path) -> None:
    rows = documented((checkout / "docs" / "logs.md").read_text("utf-8"))
    assert len(rows) == len(set(rows))
    merged: dict[tuple[str, str], set[str]] = {}
    for event in logged():
        merged.setdefault((event.name, event.level), set()).update(event.fields)
    expected = {
        Event(name, level, tuple(sorted(fields)) or ("",))
        for (name, level), fields in merged.items()
    }
    assert set(rows) == expected


def test_names_of_events_are_words_that_can_be_searched_for() -> None:
    for event in logged():
        assert event.name.replace("_", "").isalpha(), event
        assert event.name.islower(), event


def test_the_check_itself_sees_all_ways_to_log() -> None:
    source = """
log.info("plain", a=1, b=2)
log.warning("one" if x else "other", why=y)
log.exception("failed", n=1)
log.error("broken", exc_info=error)
facts: dict[str, object] = {"why": why}
End("ended", facts, "")
other.info("nothing")
"""
    assert set(events_of(source)) == {
        Event("plain", "info", ("a", "b")),
        Event("one", "warning", ("why",)),
        Event("other", "warning", ("why",)),
        Event("failed", "error", ("exception", "n")),
        Event("broken", "error", ("exception",)),
        Event("ended", "warning", ("name", "why")),
    }
