"""The built site: every link leads somewhere, and no page loads anything from another host.

`python -m website.check build/site` prints what is wrong, and fails if there is anything.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes whose URLs a browser fetches by itself, beside those of <link>.
LOADED = {
    ("audio", "src"), ("embed", "src"), ("iframe", "src"), ("img", "src"), ("img", "srcset"),
    ("input", "src"), ("object", "data"), ("script", "src"), ("source", "src"),
    ("source", "srcset"), ("track", "src"), ("use", "href"), ("video", "poster"), ("video", "src"),
}  # fmt: skip
# Relations of <link> that name another page, and load nothing.
NAMED = {"alternate", "author", "canonical", "license", "next", "prev", "search"}
IN_STYLE = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


class Document(HTMLParser):
    """What a document loads, where its links lead, and the places in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)
        for style in re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL):
            self.loads += in_style(style)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Sort the attributes of a tag."""
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        self.loads += [given[name] for name in given if (tag, name) in LOADED]
        self.loads += in_style(given.get("style", ""))
        if "href" in given and tag in {"a", "area"}:
            self.links.append(given["href"])
        elif "href" in given and tag == "link":
            named = set(given.get("rel", "").split()) <= NAMED
            (self.links if named else self.loads).append(given["href"])


def in_style(text: str) -> list[str]:
    """The URLs that a stylesheet loads."""
    return [one or other for one, other in IN_STYLE.findall(text)]


def elsewhere(url: str) -> bool:
    """Whether a URL names a host, or a way to one."""
    parts = urlsplit(url)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


@cache
def document(path: Path) -> Document:
    """A document of the site."""
    return Document(path.read_text("utf-8"))


def dead(source: Path, url: str) -> bool:
    """Whether a link inside the site leads nowhere."""
    parts = urlsplit(url)
    target = source if not parts.path else (source.parent / unquote(parts.path)).resolve()
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return True
    inside = target.suffix == ".html" and parts.fragment
    return bool(inside and unquote(parts.fragment) not in document(target).places)


def of_page(page: Path) -> Iterator[str]:
    """What is wrong with a page."""
    found = document(page)
    for url in found.loads:
        if elsewhere(url):
            yield f"loads {url}"
        elif not url.startswith(("data:", "#")) and dead(page, url):
            yield f"loads {url}, which is not there"
    for url in found.links:
        if not elsewhere(url) and dead(page, url):
            yield f"links to {url}, which is not there"


def problems(site: Path) -> Iterator[str]:
    """Everything that is wrong with a site."""
    site = site.resolve()
    pages = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    if not pages:
        yield f"{site} has no pages"
    for page in pages:
        for problem in of_page(page):
            yield f"{page.relative_to(site)} {problem}"
    for stylesheet in sorted(site.rglob("*.css")):
        for url in filter(elsewhere, in_style(stylesheet.read_text("utf-8"))):
            yield f"{stylesheet.relative_to(site)} loads {url}"


def main() -> None:
    """Check the site that the command line names."""
    found = list(problems(Path(sys.argv[1])))
    print(*found, sep="\n", end="\n" if found else "")  # noqa: T201, a command
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
