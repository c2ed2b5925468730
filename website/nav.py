"""The navigation of the site: its sections and pages in the order of mkdocs.yml.

Read line by line, so that the tests need no parser of YAML.
"""

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
SECTION = re.compile(r"  - ([^:]+):$")
LINK = re.compile(r"\]\(([\w./-]+\.md)")
ENTRY = re.compile(r"      - ([^:]+): (\S+\.md)$")


@dataclass(frozen=True)
class Page:
    """A page: its section, its title there, and its path on the site."""

    section: str
    title: str
    path: str

    @property
    def source(self) -> Path:
        """The file of the page: in docs/, or at the root of the checkout."""
        inside = CHECKOUT / "docs" / self.path
        return inside if inside.exists() else CHECKOUT / self.path

    def text(self) -> str:
        """The page in Markdown, with links to the places that pages have on the site."""
        places = {page.source: page.path for page in pages()}

        def moved(link: re.Match[str]) -> str:
            target = (self.source.parent / link[1]).resolve()
            if target not in places:
                return link[0]
            return f"]({os.path.relpath(places[target], Path(self.path).parent)}"

        return LINK.sub(moved, self.source.read_text("utf-8"))


@cache
def pages() -> list[Page]:
    """All pages in the order of the navigation."""
    text = (CHECKOUT / "website" / "mkdocs.yml").read_text("utf-8")
    _, _, nav = text.partition("\nnav:\n")
    found, section = [], ""
    for line in nav.split("\n\n", 1)[0].splitlines():
        if line.lstrip().startswith("#"):
            continue
        if heading := SECTION.match(line):
            section = heading[1]
        elif entry := ENTRY.match(line):
            found.append(Page(section, entry[1], entry[2]))
        else:
            msg = f"mkdocs.yml: a line of nav that is no section and no page: {line}"
            raise ValueError(msg)
    return found


def root_pages() -> list[Page]:
    """The pages that are not in docs/."""
    return [page for page in pages() if page.source.parent == CHECKOUT]
