"""The site built by `make docs`, in a browser that reads it as files."""

from collections.abc import Iterator

import pytest

from conftest import CHECKOUT
from support.browser.chromium import running_chromium
from support.browser.tab import Tab, opened_tab

SITE = CHECKOUT / "build" / "site"
RESULTS = "document.querySelectorAll('.md-search-result__item')"


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    if not (SITE / "index.html").exists():
        pytest.skip("the docs are not built as a site (make docs)")
    with running_chromium() as browser, opened_tab(browser, f"file://{SITE}/index.html") as opened:
        yield opened


def background(tab: Tab) -> str:
    return str(tab.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_search_works_without_a_server(tab: Tab) -> None:
    tab.click("label[for=__search]")
    tab.evaluate("document.querySelector('.md-search__input').focus()")
    tab.type("dropTai")
    tab.press("l")
    tab.wait(f"{RESULTS}.length > 0", "the search finds something")
    assert "foreblock_dropTail" in tab.text(".md-search-result__list")


def test_light_and_dark_follow_the_system(tab: Tab) -> None:
    tab.set_viewport(dark=False)
    light = background(tab)
    tab.set_viewport(dark=True)
    tab.wait(f"getComputedStyle(document.body).backgroundColor !== '{light}'", "it is dark")


def test_a_phone_shows_pages_without_scrolling_sideways(tab: Tab) -> None:
    for page in ("index", "settings", "performance", "rpc"):
        tab.set_viewport(width=390, height=844)
        tab.open(f"file://{SITE}/{page}.html")
        wide, shown = tab.evaluate("[document.body.scrollWidth, window.innerWidth]")
        assert wide <= shown, page


def test_nothing_comes_from_elsewhere(tab: Tab) -> None:
    """After all tests above."""
    assert tab.problems == []
    assert [url for url in tab.requested if not url.startswith(("file:", "data:"))] == []
