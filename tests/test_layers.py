"""Imports point down: nothing knows what stands above it.

    cli → bench → ledger → _engine, primitives, errors

Packages that come later take their place here with them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "foreblock"

# Each part of the package, and the other parts it may import.
BELOW = {
    "": {""},
    "__main__": {"cli"},
    "errors": set[str](),
    "primitives": set[str](),
    "ledger": {"_engine", "errors", "primitives"},
    "bench": {"_engine", "ledger"},  # it measures the seam itself
    "cli": {"", "bench", "ledger", "errors", "primitives"},
}


def imports(source: str) -> Iterator[str]:
    """The modules of foreblock that a source imports, by their dotted names."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.ImportFrom():
                pytest.fail("a relative import hides where it points")
            case _:
                pass


def part(module: str) -> str | None:
    """The part of the package that a module belongs to; none outside the package."""
    match module.split("."):
        case ["foreblock"]:
            return ""
        case ["foreblock", name, *_]:
            return name
        case _:
            return None


def part_of_file(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_imports_point_down(path: Path) -> None:
    here = part_of_file(path)
    found = {part(module) for module in imports(path.read_text("utf-8"))}
    above = found - BELOW[here] - {here, None}
    assert not above, f"{here or 'foreblock'} imports {above}"


@pytest.mark.parametrize(
    "module",
    [
        "block_rules", "check", "config", "difficulty", "fees", "forks", "header_rules",
        "optimism_rules", "profile", "uncles",
    ],
)  # fmt: skip
def test_rules_do_no_input_or_output(module: str) -> None:
    """Rules take values and give values: no files, clocks, randomness or stores."""
    source = (PACKAGE / "ledger" / f"{module}.py").read_text("utf-8")
    forbidden = {"os", "pathlib", "io", "time", "random", "socket", "subprocess", "asyncio"}
    assert not forbidden & {name.split(".")[0] for name in imports(source)}
    assert "open(" not in source
    assert "Store" not in source


def test_the_check_itself_sees_an_upward_import() -> None:
    source = "from foreblock.cli import main\nimport foreblock.ledger.chain\n"
    assert {part(module) for module in imports(source)} == {"cli", "ledger"}
