"""docs/rpc.md and the pages of its families, to which its table links."""

import re
from pathlib import Path

INDEX = Path(__file__).resolve().parents[2] / "docs" / "rpc.md"
FAMILY = re.compile(r"^\| \*\*\[(.+)\]\((rpc/[\w-]+\.md)\)\*\* \| \| \|$", re.MULTILINE)


def family_pages() -> dict[str, Path]:
    """The page of each family by its title, in the order of the table."""
    rows = FAMILY.findall(INDEX.read_text("utf-8"))
    return {title: INDEX.parent / name for title, name in rows}


def rpc_text() -> str:
    """The index and all pages as one text."""
    return "\n".join(each.read_text("utf-8") for each in (INDEX, *family_pages().values()))
