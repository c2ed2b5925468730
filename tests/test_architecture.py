"""ARCHITECTURE.md has every folder and every module, with the words of their first lines.

    python tests/test_architecture.py     writes its tables again, after a change

A folder's section says its rule by hand; which parts it may import comes from
`test_layers`, and a module's row from the first line of its docstring.
"""

import ast
import re
from pathlib import Path

from test_layers import BELOW

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGE = CHECKOUT / "python" / "foreblock"
CRATES = CHECKOUT / "crates"
PAGE = CHECKOUT / "ARCHITECTURE.md"
TABLE = re.compile(r"<!-- table of (\S+) -->\n.*?<!-- end -->\n", re.DOTALL)


def first_line(module: Path) -> str:
    if module.suffix == ".rs":
        return module.read_text("utf-8").splitlines()[0].removeprefix("//! ")
    text = ast.get_docstring(ast.parse(module.read_text("utf-8"))) or ""
    return text.splitlines()[0]


def modules(folder: str) -> list[Path]:
    """The modules of a folder, by its path from the checkout."""
    paths = (CHECKOUT / folder).glob("*.rs" if folder.startswith("crates") else "*.py")
    left_out = {"__init__", "__main__", "lib", "mod", "tests"}
    return sorted(path for path in paths if path.stem not in left_out)


def below(folder: str) -> str:
    """The parts that a folder may import, as words."""
    part = folder.removeprefix("python/foreblock").removeprefix("/")
    parts = BELOW.get(part, "").split()
    return f"May import: {', '.join(f'`{name}`' for name in parts)}.\n\n" if parts else ""


def table(folder: str) -> str:
    rows = "".join(
        f"| `{path.name}` | {first_line(path).replace('|', chr(92) + '|')} |\n"
        for path in modules(folder)
    )
    head = f"\n{below(folder)}| Module | Holds |\n|---|---|\n"
    return f"<!-- table of {folder} -->\n{head}{rows}\n<!-- end -->\n"


def with_tables(page: str) -> str:
    return TABLE.sub(lambda found: table(found[1]), page)


def folders() -> set[str]:
    """Every folder that has modules of its own."""
    python = {path.parent for path in PACKAGE.rglob("*.py") if path.stem != "__init__"}
    rust = {path.parent for path in CRATES.glob("*/src/**/*.rs") if path.stem != "mod"}
    found = {str(path.relative_to(CHECKOUT)) for path in python | rust}
    return {folder for folder in found if modules(folder) and "tests" not in folder.split("/")}


def test_every_folder_has_its_table() -> None:
    assert set(re.findall(r"<!-- table of (\S+) -->", PAGE.read_text("utf-8"))) == folders()


def test_tables_are_what_the_modules_say() -> None:
    page = PAGE.read_text("utf-8")
    assert with_tables(page) == page, "run: python tests/test_architecture.py"


def test_the_words_of_a_row_are_a_sentence() -> None:
    for folder in folders():
        for path in modules(folder):
            assert re.fullmatch(r"[^|]{12,}[.:]", first_line(path)), path


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), "utf-8")
