"""Imports point down: nothing knows what stands above it.

    cli → bench, conformance → client, ledger → _engine, primitives, errors
    cli → service → settings → server → reply, room, setting, errors
    worker → server, bus; its handler: app → rpc, methods → ledger
    writer → writing → sequencer, feed, bus, ledger

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
    "model": set[str](),
    "network": set[str](),
    "foreign_text": set[str](),
    "bus": {"clock", "errors"},
    "clock": set[str](),
    "backoff": set[str](),
    "temporary": set[str](),
    "room": set[str](),
    "later": set[str](),
    "reply": {"room"},
    "turns": set[str](),
    "long_json": {"_engine"},
    "setting": {"errors"},
    "settings": {"errors", "server", "setting"},
    "networks": {"errors", "setting", "settings"},
    "server": {"errors", "reply", "room", "setting"},  # nothing of JSON-RPC or Ethereum
    "log_queue": set[str](),
    "logs": {"log_queue"},
    "service": {"errors", "logs", "network", "server", "settings", "temporary"},
    "worker": {
        "bus",
        "errors",
        "logs",
        "room",
        "server",
        "service",
        "settings",
    },  # its handler by name
    "writing": {
        "backoff",
        "bus",
        "canonical",
        "clock",
        "errors",
        "feed",
        "foreign_text",
        "ledger",
        "model",
        "network",
        "sequencer",
    },
    "writer": {
        "bus",
        "clock",
        "errors",
        "feed",
        "logs",
        "model",
        "network",
        "server",
        "service",
        "settings",
        "writing",
    },
    "ledger": {"_engine", "clock", "errors", "model", "primitives"},
    "sequencer": {"clock", "errors", "ledger", "model", "primitives"},
    # Nothing of who listens.
    "feed": {"backoff", "clock", "errors", "foreign_text", "model", "primitives"},
    "canonical": {
        "backoff",
        "client",
        "clock",
        "errors",
        "foreign_text",
        "ledger",
        "primitives",
    },
    "recording": {"clock", "errors", "feed", "model"},
    "rpc": {
        "errors",
        "later",
        "long_json",
        "reply",
        "room",
        "turns",
    },  # nothing of HTTP or Ethereum
    # The engine reads hex.
    "methods": {
        "_engine",
        "errors",
        "later",
        "ledger",
        "long_json",
        "primitives",
        "reply",
        "turns",
    },
    "app": {
        "bus",
        "clock",
        "errors",
        "ledger",
        "methods",
        "network",
        "reply",
        "room",
        "rpc",
        "settings",
        "turns",
    },
    "abi": {"_engine", "errors", "primitives"},  # keccak for selectors
    "client": {"errors"},
    "running": {"client", "errors"},
    "watching": {"errors"},
    # The engine for hashes of headers.
    "conformance": {"_engine", "client", "errors", "ledger", "primitives", "running"},
    # It measures the seam itself.
    "bench": {
        "_engine",
        "client",
        "clock",
        "errors",
        "feed",
        "ledger",
        "logs",
        "model",
        "primitives",
        "running",
        "sequencer",
    },
    "cli": {
        "",
        "abi",
        "bench",
        "client",
        "clock",
        "conformance",
        "errors",
        "feed",
        "ledger",
        "logs",
        "network",
        "networks",
        "primitives",
        "recording",
        "sequencer",
        "server",
        "service",
        "settings",
        "temporary",
        "watching",
    },
}


def imports(source: str) -> Iterator[str]:
    """The modules of foreblock that a source imports, by their dotted names."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module="foreblock", names=names, level=0):
                yield from (f"foreblock.{name.name}" for name in names)
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
        "block_id", "block_rules", "buffer", "calls/checks", "candidates", "check", "checksum",
        "config", "created_address", "deposit_receipt", "difficulty", "fees", "forks",
        "header_rules", "intrinsic_gas", "l1_attributes", "l1_cost", "l1_fees", "next_fees",
        "optimism_rules", "classification", "profile", "uncles",
    ],
)  # fmt: skip
def test_rules_do_no_input_or_output(module: str) -> None:
    """Rules take values and give values: no files, clocks, randomness or stores."""
    (path,) = (PACKAGE / "ledger").rglob(f"{module}.py")
    source = path.read_text("utf-8")
    forbidden = {"os", "pathlib", "io", "time", "random", "socket", "subprocess", "asyncio"}
    assert not forbidden & {name.split(".")[0] for name in imports(source)}
    assert "open(" not in source
    assert "Store" not in source


def test_methods_take_nothing_but_hex_texts_from_the_engine() -> None:
    for path in (PACKAGE / "methods").glob("*.py"):
        names = {
            name.name
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module == "foreblock._engine"
            for name in node.names
        }
        assert all(name.startswith("read_") for name in names), path.name


def test_the_check_itself_sees_an_upward_import() -> None:
    source = "from foreblock.cli import main\nimport foreblock.ledger.importing.chain\n"
    assert {part(module) for module in imports(source)} == {"cli", "ledger"}
