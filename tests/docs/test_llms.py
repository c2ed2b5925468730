"""llms.txt has every page of the navigation, and llms-full.txt all of their text."""

import re

from website import llms
from website.markdown_links import links
from website.nav import pages


def test_every_page_is_in_the_index_below_its_section() -> None:
    found, section = [], ""
    for line in llms.index().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif entry := re.fullmatch(r"- \[(.+)\]\((.+)\): (.+)", line):
            found.append((section, entry[1], entry[2]))
            assert entry[3] != entry[1], f"{entry[2]} has no first sentence"
    assert found == [(page.section, page.title, page.path) for page in pages()]


def test_the_index_has_the_form_of_llms_txt() -> None:
    title, blank, summary, *_ = llms.index().splitlines()
    assert title == "# foreblock"
    assert blank == ""
    assert summary.startswith("> ")


def test_the_full_text_has_every_page() -> None:
    text = llms.full()
    for page in pages():
        assert page.text().strip() in text


def test_links_in_the_text_name_the_places_of_the_site() -> None:
    there = {page.path for page in pages()}
    (start,) = (page for page in pages() if page.path == "index.md")
    named = {link.split("#")[0] for link in links(start.text()) if link.endswith(".md")}
    assert "ARCHITECTURE.md" in named
    assert named <= there
    (contributing,) = (page for page in pages() if page.path == "CONTRIBUTING.md")
    assert not [link for link in links(contributing.text()) if link.startswith("docs/")]
