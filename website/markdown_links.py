"""Links in Markdown files: where they lead, and the anchors of headings."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def prose(text: str) -> str:
    """A file without its blocks of code."""
    return FENCE.sub("", text)


def links(text: str) -> list[str]:
    """The targets of all links and pictures, without those in code."""
    return LINK.findall(CODE.sub("``", prose(text)))


def anchor(heading: str) -> str:
    """The anchor of a heading, as forges make it: letters, digits, hyphens and underscores."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """The anchors of a file."""
    return {anchor(heading) for heading in HEADING.findall(prose(text))}


def dead_links(path: Path) -> Iterator[str]:
    """The relative links of a file that lead nowhere."""
    for link in links(path.read_text("utf-8")):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / parts.path).resolve() if parts.path else path
        if not target.exists():
            yield f"{link}: there is no such file"
        elif parts.fragment and parts.fragment not in anchors(target.read_text("utf-8")):
            yield f"{link}: there is no such heading"
