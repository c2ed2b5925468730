"""Pages as mkdocs needs them, where it differs from forges: one title, bars in code, links."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from website.nav import CHECKOUT, Page, pages

FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
TITLE = re.compile(r"^# ", re.MULTILINE)
NAMED = re.compile(r"(?<!\[)`([\w/-]+\.md)`(?!\])")


def for_the_site(page: Page) -> str:
    """The Markdown of a page that mkdocs renders."""
    text = in_prose(page.text(), bars_in_code)
    return one_title(in_prose(text, lambda part: linked_names(part, page)))


def in_prose(text: str, change: Callable[[str], str]) -> str:
    """Change a text outside its blocks of code."""
    parts = FENCE.split(text)
    parts[::2] = map(change, parts[::2])
    return "".join(parts)


def bars_in_code(text: str) -> str:
    """Take the backslash from bars in code in tables, where forges want it and mkdocs shows it."""

    def row(found: re.Match[str]) -> str:
        return CODE.sub(lambda code: code[0].replace("\\|", "|"), found[0])

    return re.sub(r"^\|.*", row, text, flags=re.MULTILINE)


def linked_names(text: str, page: Page) -> str:
    """Let names of pages, such as `docs/rpc.md` and `CHANGELOG.md`, be links."""
    places = {each.source: each.path for each in pages()}

    def linked(name: re.Match[str]) -> str:
        place = places.get(CHECKOUT / name[1])
        if place in (None, page.path):
            return name[0]
        return f"[{name[0]}]({os.path.relpath(place, Path(page.path).parent)})"

    return NAMED.sub(linked, text)


def one_title(text: str) -> str:
    """Move all headings but the first down a level if there are several titles.

    The table of contents shows what is below the first title, and nothing else.
    """
    if sum(len(TITLE.findall(part)) for part in FENCE.split(text)[::2]) <= 1:
        return text
    moved = in_prose(text, lambda part: re.sub(r"^#", "##", part, flags=re.MULTILINE))
    return moved.replace("## ", "# ", 1)
