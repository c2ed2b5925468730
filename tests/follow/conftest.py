"""What tests of following share: a dev chain that is asked through proxies."""

from collections.abc import Iterator

import pytest

from support.servers.dev_processes import Dev, dev_chain


@pytest.fixture(scope="module")
def upstream() -> Iterator[Dev]:
    """A dev chain with a transaction now and then."""
    with dev_chain("--test-listen=", "--workers=1", "--load=20", "--block-time=1") as dev:
        yield dev
