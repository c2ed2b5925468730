"""docs/rpc.md has every method by family, in the order of the dispatch table.

    python tests/methods/test_rpc_page.py     sorts its table and its sections, after a change

A row of its table names the parameters of the signature; `?` marks those that are optional in both
dialects.
"""

import re
from pathlib import Path

from foreblock.methods import make_families
from foreblock.methods.openrpc import read_signature
from foreblock.methods.table import Family
from foreblock.settings import Settings
from support.servers.long_work import scheduler

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rpc.md"
FAMILIES = make_families(Settings(), scheduler(1))
HEADING = "| Method | Parameters | Result |\n|---|---|---|\n"
SECTION = re.compile(r"^## `([\w.]+)`\n.*?(?=^#{1,2} |\Z)", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| `([\w.]+)` \| (.*?) ?\| .*\n", re.MULTILINE)


def first_of(family: Family) -> str:
    return f"| **{family.title}** | | |\n"


def arranged(page: str) -> str:
    """The page with rows and sections in the order of the table."""
    head, table, rest = page.partition(HEADING)
    rows = {found[1]: found[0] for found in ROW.finditer(rest.partition("\n\n")[0] + "\n")}
    sections = {found[1]: found[0] for found in SECTION.finditer(rest)}
    middle = re.split(r"^(?:# |## `)", rest.partition("\n\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    listed, shown = "", ""
    for family in FAMILIES:
        names = [method.name for method in family.methods]
        listed += first_of(family) + "".join(rows[name] for name in names)
        shown += f"# {family.title}\n\n" + "".join(sections[name] for name in names)
        if not shown.endswith("\n\n"):
            shown += "\n"
    return f"{head}{table}{listed}\n{middle}{shown.rstrip()}\n"


def test_methods_are_in_the_order_of_the_table() -> None:
    page = PAGE.read_text("utf-8")
    assert page == arranged(page), "python tests/methods/test_rpc_page.py"


def test_rows_name_the_parameters_of_the_signature() -> None:
    rows = {found[1]: found[2] for found in ROW.finditer(PAGE.read_text("utf-8"))}
    for family in FAMILIES:
        for method in family.methods:
            parameters = read_signature(method.signature).parameters
            names = [each.name + ("?" if each.mark == "?" else "") for each in parameters]
            assert rows[method.name] == ", ".join(names), method.name


if __name__ == "__main__":
    PAGE.write_text(arranged(PAGE.read_text("utf-8")), "utf-8")
