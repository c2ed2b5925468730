"""Hooks of mkdocs: pages and files that are not in docs/, and files made at the end."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from website import llms
from website.nav import CHECKOUT, pages, root_pages

CODE = re.compile(r"`[^`]+`")
ASSETS = {
    "assets/icon.svg": CHECKOUT / "python/foreblock/page/static/icon.svg",
    "assets/site.css": CHECKOUT / "website/assets/site.css",
    "assets/iframe-worker.js": CHECKOUT / "website/assets/iframe-worker.js",
}


def on_files(files: Any, config: Any) -> Any:  # noqa: ANN401, mkdocs has no stubs here
    """Add the pages at the root of the checkout, and the assets."""
    added = {page.path: page.source for page in root_pages()} | ASSETS
    for path, source in added.items():
        files.append(File.generated(config, path, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ANN401
    """Point links at the places that pages have on the site, and give a page one title."""
    known = {each.path: each for each in pages()}
    found = known.get(page.file.src_uri)
    return one_title(bars_in_code(found.text() if found else markdown))


def bars_in_code(markdown: str) -> str:
    """Take the backslash from bars in code in tables: forges want it there, mkdocs shows it."""
    return re.sub(
        r"^\|.*", lambda row: CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]),
        markdown, flags=re.MULTILINE,
    )  # fmt: skip


def one_title(markdown: str) -> str:
    """Move all headings after the first down a level if there are several titles."""
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    prose = "".join(parts[::2])
    if len(re.findall(r"^# ", prose, flags=re.MULTILINE)) < 2:
        return markdown
    for place in range(0, len(parts), 2):
        parts[place] = re.sub(r"^(#+ )", r"#\1", parts[place], flags=re.MULTILINE)
    return "".join(parts).replace("## ", "# ", 1)


def on_post_build(config: Any) -> None:  # noqa: ANN401
    """Write llms.txt, llms-full.txt and the Markdown that they name."""
    site = Path(config.site_dir)
    for page in pages():
        place = site / page.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(page.text(), "utf-8")
    (site / "llms.txt").write_text(llms.index(), "utf-8")
    (site / "llms-full.txt").write_text(llms.full(), "utf-8")
