"""Modules of the Rust crates form no cycles: neither files nor the top modules of a crate.

A path counts for the module that defines its last item, so re-exports are no arrows. Tests are
left out.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from support.each_case import each_case

CRATES = Path(__file__).resolve().parent.parent / "crates"

# The path of a module or an item within its crate.
Module = tuple[str, ...]

COMMENT = re.compile(r"//.*")
TESTS = re.compile(r"(?ms)#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))? )?(?:(?:mod|use) [^;{]+;|\w.*?^\})")
USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")


def sources(crate: Path) -> dict[Module, str]:
    """The code of each module, without comments and tests."""
    found = {}
    for path in sorted((crate / "src").rglob("*.rs")):
        parts = path.relative_to(crate / "src").with_suffix("").parts
        if not {"tests", "testing", "fuzzing"} & set(parts):
            module = parts[:-1] if parts[-1] in {"mod", "lib"} else parts
            found[module] = TESTS.sub("", COMMENT.sub("", path.read_text("utf-8")))
    return found


def leaves(tree: str) -> Iterator[tuple[str, str]]:
    """The paths of a `use`, and the names that it gives to them."""
    head, brace, rest = tree.strip().partition("{")
    if brace:
        for part in members(rest.rstrip()[:-1]):
            yield from ((head + path, name) for path, name in leaves(part))
    elif head:
        path, _, name = head.partition(" as ")
        path = path.strip().removesuffix("::self")
        yield path, name.strip() or path.rpartition("::")[2]


def members(trees: str) -> list[str]:
    """The members of a brace, split at the commas outside of inner braces."""
    parts, depth = [""], 0
    for character in trees:
        depth += (character == "{") - (character == "}")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def absolute(path: str, module: Module, code: Mapping[Module, str]) -> Module | None:
    """The path from the root of the crate. None for other crates."""
    first, *rest = path.split("::")
    match first:
        case "crate":
            return tuple(rest)
        case "self":
            return (*module, *rest)
        case "super":
            return absolute("::".join(["self", *rest]), module[:-1], code)
        case _:
            return (*module, first, *rest) if (*module, first) in code else None


def definer(path: Module, names: Mapping[Module, Mapping[str, Module]]) -> Module:
    """The module that defines the item at a path."""
    module: Module = ()
    for number, name in enumerate(path):
        if (*module, name) in names:
            module = (*module, name)
        elif name in names[module]:
            return definer((*names[module][name], *path[number + 1 :]), names)
        else:
            break
    return module


def arrows(code: Mapping[Module, str]) -> dict[Module, set[Module]]:
    """The modules that each module uses."""
    names = {
        module: {
            name: target
            for tree in USE.findall(text)
            for path, name in leaves(tree)
            if (target := absolute(path, module, code)) is not None
        }
        for module, text in code.items()
    }
    found = {}
    for module, text in code.items():
        body = USE.sub("", text)
        words = {*re.findall(r"\w+", body), "*"}
        used = [path for name, path in names[module].items() if name in words]
        used += [path for name in PATH.findall(body) if (path := absolute(name, module, code))]
        found[module] = {definer(path, names) for path in used} - {module}
    return found


def cycles(graph: Mapping[Module, set[Module]]) -> set[tuple[str, ...]]:
    """The groups of modules that all use each other, directly or through others."""
    reached: dict[Module, set[Module]] = {}
    for start in graph:
        reached[start], ahead = set(), [*graph[start]]
        while ahead:
            if (module := ahead.pop()) not in reached[start]:
                reached[start].add(module)
                ahead += graph[module]
    return {
        tuple(sorted("::".join(one) for one in reached[start] if start in reached[one]))
        for start in graph
        if start in reached[start]
    }


def top(graph: Mapping[Module, set[Module]]) -> dict[Module, set[Module]]:
    """The arrows between the modules of the crate's root."""
    found: dict[Module, set[Module]] = {module[:1]: set() for module in graph}
    for module, used in graph.items():
        found[module[:1]] |= {one[:1] for one in used} - {module[:1]}
    return found


@each_case("crate", sorted(CRATES.iterdir()), ids=lambda crate: crate.name)
def test_no_modules_of_a_crate_form_a_cycle(crate: Path) -> None:
    files = arrows(sources(crate))
    assert len(files) > 30
    assert cycles(files) | cycles(top(files)) == set()


def test_the_check_itself_sees_cycles_of_files_and_of_top_modules() -> None:
    code = {
        (): "pub mod a; pub mod b;",
        ("a",): "pub use low::Low;\nmod low;\nmod high;",
        ("a", "low"): "use super::high;\npub struct Low;\nfn f() { high::g() }",
        ("a", "high"): "use crate::a::Low as L;\npub fn g(_: L) {}",
        ("b",): "use crate::{c::{C, D}};\nfn f(_: C) {}",
        ("c", "one"): "pub struct C;\nfn f() { crate::b::f() }",
        ("c", "two"): "use crate::b;\n#[cfg(test)]\nmod tests {\n    use crate::b::f;\n}\n",
        ("c",): "pub use one::C;\npub use two::D;",
    }
    files = arrows({module: TESTS.sub("", text) for module, text in code.items()})
    assert cycles(files) == {("a::high", "a::low"), ("b", "c::one")}
    assert cycles(top(files)) == {("b", "c")}
