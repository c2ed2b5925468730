"""A browser, and dev chains for the page."""

from collections.abc import Iterator

import pytest

from support.browser.chromium import Browser, running_chromium
from support.servers.dev_processes import Dev, dev_chain


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as running:
        yield running


@pytest.fixture(scope="module")
def dev(browser: Browser) -> Iterator[Dev]:  # noqa: ARG001, no chain without a browser
    with dev_chain("--load=5", "--workers=1") as running:
        yield running
