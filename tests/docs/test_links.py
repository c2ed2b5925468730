"""Every relative link of the docs and the README leads to an existing file and heading."""

from pathlib import Path

from conftest import CHECKOUT
from support.each_case import each_case
from website.markdown_links import anchors, dead_links, links
from website.nav import pages

FILES = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")])


@each_case("path", FILES, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert list(dead_links(path)) == []


def test_pages_link_to_nothing_that_the_site_does_not_have(checkout: Path) -> None:
    there = {page.source for page in pages()}
    for page in pages():
        for link in links(page.source.read_text("utf-8")):
            target = (page.source.parent / link.split("#")[0]).resolve()
            inside = "://" in link or target in there or target.is_relative_to(checkout / "docs")
            assert inside, f"{page.path} links to {link}"


def test_a_wrong_file_and_a_wrong_heading_are_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# Title\n\n```\n# not a heading\n```\n\n## `eth_x`: a, b\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md) [b](there.md#eth_x-a-b) [c](https://example.org/x.md) [d](#here)\n# Here\n"
        "`[code](gone.md)` [e](gone.md) [f](there.md#not-a-heading) ![g](gone.png)\n"
    )
    assert [each.split(":")[0] for each in dead_links(page)] == [
        "gone.md", "there.md#not-a-heading", "gone.png",
    ]  # fmt: skip


def test_anchors_are_those_of_forges() -> None:
    text = "# The [page](page.md)\n## `NotHere`: the data / is not here\n### A_b-C\n"
    assert anchors(text) == {"the-page", "nothere-the-data--is-not-here", "a_b-c"}
