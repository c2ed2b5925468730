"""axe-core over every view of the page: no finding of impact serious or critical."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.browser.chromium import Browser, running_chromium
from support.browser.page_views import LIVE, views
from support.browser.tab import opened_tab
from support.servers.client_libraries import MODULES, program_of
from support.servers.dev_processes import Dev, dev_chain

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"width": 1440, "height": 900, "dark": False},
    "dark": {"width": 1440, "height": 900, "dark": True},
    "phone": {"width": 390, "height": 844, "dark": False},
    "phone in the dark": {"width": 390, "height": 844, "dark": True},
}
# The rules that axe-core runs by default.
RUN = """axe.run(document, {resultTypes: ["violations"]}).then(({violations}) =>
  violations.filter(({impact}) => impact === "serious" || impact === "critical")
    .flatMap(({id, impact, nodes}) => nodes.slice(0, 5).map(({target, any, all, none}) =>
      `${id} (${impact}): ${target.join(" ")}: ${[...any, ...all, ...none][0]?.message}`)))"""


@pytest.fixture(scope="module")
def axe() -> str:
    program_of("axe-core")
    return (MODULES / "axe-core" / "axe.min.js").read_text("utf-8")


@pytest.fixture(scope="module")
def browser(axe: str) -> Iterator[Browser]:  # noqa: ARG001, no browser without it
    with running_chromium() as running:
        yield running


@pytest.fixture(scope="module")
def dev(browser: Browser) -> Iterator[Dev]:  # noqa: ARG001, no chain without a browser
    with dev_chain("--load=5", "--workers=1") as running:
        yield running


@pytest.mark.parametrize("look", LOOKS)
def test_every_view_is_accessible(browser: Browser, dev: Dev, axe: str, look: str) -> None:
    findings: dict[str, list[str]] = {}
    with opened_tab(browser, dev.main.url, **LOOKS[look]) as tab:
        tab.wait(f"{LIVE} === 2", "both networks are live")
        # The page's content security policy allows no script from elsewhere; the debugger's run.
        tab.evaluate(axe + "; true")
        for name, show in views(dev):
            show(tab)
            findings[name] = tab.evaluate(RUN)
        tab.evaluate("location.hash = '#/'")
        assert tab.problems == []
    assert {name: found for name, found in findings.items() if found} == {}


def test_a_page_with_findings_has_some(browser: Browser, axe: str) -> None:
    """The check itself finds a text that can hardly be read, and a button without a name."""
    page = "data:text/html,<html lang=en><title>x</title><p style='color:%23ccc'>Words</p><button>"
    with opened_tab(browser, page) as tab:
        tab.evaluate(axe + "; true")
        found = tab.evaluate(RUN)
    assert [each.partition(" ")[0] for each in found] == ["button-name", "color-contrast"]
