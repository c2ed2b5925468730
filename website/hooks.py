"""Hooks of mkdocs: pages and files that are not in docs/, and files made at the end."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from website import llms
from website.nav import CHECKOUT, pages, root_pages
from website.rewriting import for_the_site

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
    """Give mkdocs the page as it needs it; one that the navigation lacks fails the build later."""
    known = {each.path: each for each in pages()}
    found = known.get(page.file.src_uri)
    return for_the_site(found) if found else markdown


def on_post_build(config: Any) -> None:  # noqa: ANN401
    """Write llms.txt, llms-full.txt and the Markdown that they name."""
    site = Path(config.site_dir)
    for page in pages():
        place = site / page.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(page.text(), "utf-8")
    (site / "llms.txt").write_text(llms.index(), "utf-8")
    (site / "llms-full.txt").write_text(llms.full(), "utf-8")
