"""docs/rpc.md has every method by family, in the order of the dispatch table, and links to a page
for each family, which has a section for each method.

    python tests/methods/test_rpc_page.py     sorts its table and the sections, after a change

A row of its table names the parameters of the signature; `?` marks those that are optional in both
dialects.
"""

import re
from pathlib import Path

from foreblock.methods import make_families
from foreblock.methods.openrpc import read_signature
from foreblock.settings import Settings
from support.rpc_pages import FAMILY, INDEX, family_pages, rpc_text
from support.servers.long_work import scheduler

FAMILIES = make_families(Settings(), scheduler(1))
HEADING = "| Method | Parameters | Result |\n|---|---|---|\n"
SECTION = re.compile(r"^## `([\w.]+)`\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| `([\w.]+)` \| (.*?) ?\| .*\n", re.MULTILINE)


def arranged() -> dict[Path, str]:
    """The index and the pages of the families, with rows and sections in the table's order."""
    index, pages = INDEX.read_text("utf-8"), family_pages()
    head, table, rest = index.partition(HEADING)
    listed, _, after = rest.partition("\n\n")
    rows = {found[1]: found[0] for found in ROW.finditer(listed + "\n")}
    firsts = {found[1]: found[0] for found in FAMILY.finditer(listed)}
    written = "\n".join(each.read_text("utf-8") for each in pages.values())
    sections = {found[1]: found[0].rstrip() for found in SECTION.finditer(without_titles(written))}
    expected, texts = "", {}
    for family in FAMILIES:
        names = [method.name for method in family.methods]
        expected += f"{firsts[family.title]}\n" + "".join(rows[name] for name in names)
        parts = [f"# {family.title}", *(sections[name] for name in names)]
        texts[pages[family.title]] = "\n\n".join(parts) + "\n"
    return {INDEX: f"{head}{table}{expected}\n{after}", **texts}


def without_titles(text: str) -> str:
    """The sections of pages without the titles between them."""
    return re.sub(r"^# .*\n", "", text, flags=re.MULTILINE)


def test_methods_are_in_the_order_of_the_table() -> None:
    found = {each: each.read_text("utf-8") for each in (INDEX, *family_pages().values())}
    assert found == arranged(), "python tests/methods/test_rpc_page.py"


def test_each_page_of_a_family_is_in_the_table() -> None:
    assert sorted(family_pages().values()) == sorted((INDEX.parent / "rpc").glob("*.md"))


def test_rows_name_the_parameters_of_the_signature() -> None:
    rows = {found[1]: found[2] for found in ROW.finditer(rpc_text())}
    for family in FAMILIES:
        for method in family.methods:
            parameters = read_signature(method.signature).parameters
            names = [each.name + ("?" if each.mark == "?" else "") for each in parameters]
            assert rows[method.name] == ", ".join(names), method.name


if __name__ == "__main__":
    for path, text in arranged().items():
        path.write_text(text, "utf-8")
