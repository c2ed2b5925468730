"""The navigation of the site has every page once, in reading order."""

from pathlib import Path

from support.each_case import each_case
from website.nav import Page, pages


def test_every_page_of_docs_is_in_the_navigation_once(checkout: Path) -> None:
    docs = checkout / "docs"
    written = sorted(str(path.relative_to(docs)) for path in docs.rglob("*.md"))
    at_the_root = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"]
    assert sorted(page.path for page in pages()) == sorted(written + at_the_root)


def test_sections_lead_a_reader_from_the_start_to_the_design() -> None:
    sections = list(dict.fromkeys(page.section for page in pages()))
    assert sections == [
        "Start here", "Dev chain", "Clients", "Real chains", "Operating", "Reference",
        "Methods", "Design",
    ]  # fmt: skip
    assert pages()[0].path == "index.md"


@each_case("page", pages(), ids=lambda page: page.path)
def test_a_page_has_the_title_that_the_navigation_shows(page: Page) -> None:
    first, *_ = page.text().splitlines()
    assert first == f"# {page.title}"
