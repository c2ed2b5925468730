"""Decisions do no I/O, and few modules depend on NATS."""

import ast
from pathlib import Path

from support.each_case import each_case

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "foreblock"
PURE = [path for path in sorted((PACKAGE / "log").glob("*.py")) if "No I/O." in path.read_text()]


def imported(path: Path) -> set[str]:
    """The top-level names of all modules imported by a module."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_the_deciding_modules_are_there() -> None:
    assert {path.stem for path in PURE} >= {
        "message", "parts", "position", "submission", "takeover", "clock_offset",
        "held_messages", "stream_settings",
    }  # fmt: skip


@each_case("path", PURE, ids=lambda path: path.stem)
def test_they_do_no_input_or_output(path: Path) -> None:
    forbidden = {"asyncio", "io", "nats", "os", "pathlib", "socket", "time"}
    assert not forbidden & imported(path)


def test_few_modules_need_what_is_optional() -> None:
    may = {"log": {"nats", "zstandard"}, "server": {"zstandard"}, "snapshot": {"zstandard"}}
    for path in PACKAGE.rglob("*.py"):
        unknown = {"nats", "zstandard"} - may.get(path.parent.name, set())
        if any(name in path.read_text("utf-8") for name in unknown):
            assert not unknown & imported(path), path
