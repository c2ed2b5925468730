"""Imports point down: each part of the package lists the parts it may import.

Parts are the folders of the package, those of `ledger` separately, and the modules of the ground
floor. In the order of the table, no part imports a later one.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from support.each_case import each_case

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "foreblock"

# Each part, and the other parts it may import.
BELOW = {
    # The ground floor.
    "errors": "_engine",
    "primitives": "",
    "clock": "",
    "backoff": "",
    "lru_cache": "",
    "starting": "",
    "secret_urls": "",
    "types": "_engine",
    # Counters, in every process.
    "metrics": "_engine clock",
    # The status of a network: as data, text and metrics.
    "status": "metrics",
    # Scheduling in a worker, and its server; nothing of Ethereum.
    "scheduling": "errors",
    "bus": "backoff clock errors status types",
    "settings": "clock errors primitives scheduling secret_urls",
    "server": "backoff errors scheduling settings",
    "page": "server",
    "rpc": "_engine errors metrics scheduling",
    "feed": "backoff clock errors primitives types",
    # The chain and its state.
    "ledger": "",
    "ledger/rules": "_engine errors primitives",
    "ledger/genesis": "_engine clock errors primitives ledger/rules",
    "ledger/storage": "_engine clock errors primitives types ledger/genesis ledger/rules",
    "ledger/reading": (
        "_engine clock errors metrics primitives scheduling status types ledger/rules"
        " ledger/storage"
    ),
    "ledger/calls": "_engine errors primitives scheduling types ledger/reading ledger/rules",
    "ledger/tracing": (
        "_engine errors primitives scheduling types ledger/calls ledger/reading ledger/rules"
        " ledger/storage"
    ),
    "ledger/building": (
        "_engine clock errors metrics primitives types ledger/rules ledger/storage ledger/tracing"
    ),
    "ledger/checking": "_engine errors ledger/rules ledger/storage",
    "ledger/following": (
        "_engine clock errors lru_cache primitives types"
        " ledger/building ledger/rules ledger/storage"
    ),
    "ledger/importing": (
        "_engine errors primitives ledger/building ledger/genesis ledger/rules ledger/storage"
        " ledger/tracing"
    ),
    # Public chains as data.
    "chains": "errors primitives ledger/genesis ledger/rules",
    # The sources of blocks.
    "upstream": (
        "backoff clock errors feed lru_cache primitives secret_urls status types ledger/rules"
    ),
    # The client library.
    "client": "backoff errors primitives secret_urls types upstream",
    "sequencer": (
        "bus clock errors primitives settings types"
        " ledger/building ledger/genesis ledger/rules ledger/storage"
    ),
    "log": "backoff clock errors secret_urls",
    "snapshot": "errors secret_urls upstream ledger/storage",
    "sources": (
        "backoff bus clock errors feed metrics primitives secret_urls settings status types"
        " sequencer upstream"
        " ledger/building ledger/following ledger/genesis ledger/reading"
        " ledger/storage ledger/tracing"
    ),
    "replication": (
        "backoff bus clock errors feed log metrics settings snapshot sources status"
        " ledger/building ledger/genesis ledger/storage"
    ),
    # The destinations of responses.
    "methods": (
        "_engine bus errors lru_cache primitives scheduling settings types"
        " ledger/calls ledger/reading ledger/rules"
        " ledger/storage ledger/tracing"
    ),
    # A public chain, followed without its own node: writer and workers.
    "follow": (
        "backoff bus chains clock errors feed lru_cache methods metrics primitives rpc scheduling"
        " secret_urls settings sources status types upstream"
        " ledger/following ledger/reading ledger/rules ledger/storage"
    ),
    # A dev chain on a block of another chain.
    "fork": (
        "bus chains clock errors follow methods primitives rpc scheduling sequencer settings"
        " sources types upstream ledger/building ledger/following ledger/genesis ledger/reading"
        " ledger/rules ledger/storage"
    ),
    # A dev chain on top of a followed one.
    "mirror": (
        "bus clock errors feed follow sequencer settings sources status types"
        " ledger/building ledger/rules ledger/storage"
    ),
    "recording": (
        "chains errors feed follow primitives types upstream"
        " ledger/importing ledger/rules ledger/storage"
    ),
    "service": (
        "bus clock errors feed follow fork methods metrics mirror page replication rpc scheduling"
        " secret_urls sequencer server settings snapshot sources starting status types upstream"
        " ledger/calls ledger/reading ledger/storage ledger/tracing"
    ),
    # A chain in the process of its user, and what tools see of it.
    "web3": "errors scheduling upstream",
    "dev_chain": (
        "bus chains client clock errors feed follow fork methods primitives rpc scheduling"
        " sequencer server service settings sources starting types upstream web3 ledger/genesis"
        " ledger/reading ledger/rules ledger/storage ledger/tracing"
    ),
    "pytest_plugin": "dev_chain",
    "eth_tester": "client dev_chain errors primitives sequencer types",
    # Programs.
    "conformance": "errors primitives service types upstream ledger/importing",
    "bench": (
        "_engine clock errors feed primitives sequencer service settings types upstream"
        " ledger/building ledger/genesis ledger/importing ledger/rules ledger/storage"
    ),
    "cli": (
        "bench chains clock conformance errors feed follow fork log primitives secret_urls"
        " sequencer server recording service settings snapshot starting status types upstream"
        " ledger/building ledger/checking ledger/genesis ledger/importing ledger/rules"
        " ledger/storage"
    ),
    "__main__": "cli",
}


def imports(source: str) -> Iterator[str]:
    """The modules of foreblock imported by a source, and names from them, with dots."""
    return imported_by(parsed(source))


@cache
def parsed(source: str) -> Sequence[ast.stmt]:
    """The imports and the classes of a source, at any depth."""
    kinds = ast.Import | ast.ImportFrom | ast.ClassDef
    return [node for node in statements(ast.parse(source)) if isinstance(node, kinds)]


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements within a node; expressions, which are far more numerous, contain none."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, block, ()):
            if isinstance(inner, ast.stmt):
                yield inner
            yield from statements(inner)


def imported_by(nodes: Sequence[ast.stmt]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from (f"{module}.{name.name}" for name in names)
            case ast.ImportFrom():
                pytest.fail("a relative import hides where it points")
            case _:
                pass


def part(module: str) -> str | None:
    """The part of the package that a dotted name belongs to; None outside the package."""
    match module.split("."):
        case ["foreblock", "ledger", folder, *_] if f"ledger/{folder}" in BELOW:
            return f"ledger/{folder}"
        case ["foreblock", name, *_] if name != "__version__":
            return name
        case _:
            return None


def modules() -> list[tuple[str, Path]]:
    """All modules of the package by dotted name, without the package itself."""
    paths = sorted(PACKAGE.rglob("*.py"))
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths]
    return [(n, path) for n, path in zip(names, paths, strict=True) if n != "foreblock.__init__"]


def test_imports_point_down() -> None:
    upward = {}
    for name, path in modules():
        here = part(name)
        assert here in BELOW, f"{name} belongs to no part"
        found = {part(module) for module in imports(path.read_text("utf-8"))}
        upward[name] = found - {*BELOW[here].split(), here, None}
    assert {name: above for name, above in upward.items() if above} == {}


def test_parts_stand_above_what_they_import() -> None:
    parts = ["_engine", *BELOW]
    for number, (name, below) in enumerate(BELOW.items(), start=1):
        later = set(below.split()) - set(parts[:number])
        assert not later, f"{name} stands below {later}"


def test_every_arrow_of_the_table_is_there() -> None:
    found: dict[str, set[str]] = {name: set() for name in BELOW}
    for name, path in modules():
        here = part(name)
        assert here is not None
        found[here] |= {part(module) or "" for module in imports(path.read_text("utf-8"))}
    unused = {name: set(below.split()) - found[name] for name, below in BELOW.items()}
    assert not {name: arrows for name, arrows in unused.items() if arrows}


RULES = [
    *sorted((PACKAGE / "ledger" / "rules").glob("*.py")),
    *(
        PACKAGE / "ledger" / f"{name}.py"
        for name in (
            "calls/call", "following/buffer",
            "following/classification", "genesis/config",
        )
    ),
]  # fmt: skip


@each_case("path", RULES, ids=lambda path: path.stem)
def test_rules_do_no_input_or_output(path: Path) -> None:
    """Rules are pure functions: no files, clocks, randomness or stores."""
    source = path.read_text("utf-8")
    forbidden = {"os", "pathlib", "io", "time", "random", "socket", "subprocess", "asyncio"}
    assert not forbidden & {name.split(".")[0] for name in imports(source)}
    assert "open(" not in source
    assert "Store" not in source


def of_the_engine(path: Path) -> set[str]:
    """The engine's names that a module imports."""
    found = imports(path.read_text("utf-8"))
    return {name.split(".")[2] for name in found if name.startswith("foreblock._engine.")}


def stubs(*chapters: str) -> set[str]:
    """The names defined in chapters of the engine's stub."""
    sources = (PACKAGE / "_engine" / f"{chapter}.pyi" for chapter in chapters)
    return {
        node.name
        for source in sources
        for node in ast.parse(source.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }


def test_operations_of_the_engine_are_used_by_the_ledger() -> None:
    """All parts may use its values from `types`, and the benchmarks measure its operations."""
    values = stubs("abi", "codec", "transactions") | {
        "Account",
        "Allowance",
        "FetchedState",
        "Message",
        "MissingKeys",
    }
    reading = {name for name in stubs("params") if name.startswith("read_")} | {"Parts"}
    others = {
        "errors": {"MissingKeys"},
        "types": values,
        "bench": stubs("evm", "state", "store") - values,
        "methods": reading,
        "rpc": {"Parts", "read_parts"},
        "metrics": stubs("meter"),
    }
    for name, path in modules():
        part = name.split(".")[1]
        if part != "ledger":
            assert of_the_engine(path) <= others.get(part, set()), name


@pytest.mark.parametrize("package", ["ledger", "methods", "rpc"])
def test_no_two_modules_of_a_package_share_a_name(package: str) -> None:
    paths = (PACKAGE / package).rglob("*.py")
    names = Counter(path.stem for path in paths if path.stem != "__init__")
    assert [name for name, count in names.items() if count > 1] == []


# Class names with two meanings, and the two modules.
SHARED_NAMES = {
    "Batch": "JSON-RPC's word for many requests; a commit that is being put together",
    "Client": "who sends a request to a worker; the client library",
    "FastPath": "the fast path of the engine; the part of it that the server calls",
    "Undecodable": "the error, and the verdict on a flashblock whose transactions raise it",
}


def test_no_class_name_has_two_meanings() -> None:
    stubs = [*PACKAGE.glob("_engine.pyi"), *PACKAGE.glob("_engine/*.pyi")]
    names = Counter(
        node.name
        for path in [*PACKAGE.rglob("*.py"), *stubs]
        for node in parsed(path.read_text("utf-8"))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == set(SHARED_NAMES)


def test_the_check_itself_sees_an_upward_import() -> None:
    source = "from foreblock.cli import main\nimport foreblock.ledger.importing.importer\n"
    assert {part(module) for module in imports(source)} == {"cli", "ledger/importing"}
