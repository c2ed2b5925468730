"""Shared fixtures of follow tests: a dev chain behind proxies."""

from collections.abc import Iterator

import pytest

from support.servers.dev_processes import Dev, dev_chain


@pytest.fixture(scope="module")
def upstream() -> Iterator[Dev]:
    """A dev chain with occasional transactions."""
    with dev_chain("--test-listen=", "--workers=1", "--load=20", "--block-time=1") as dev:
        yield dev
