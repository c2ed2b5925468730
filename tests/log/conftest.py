"""A NATS server per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.servers.nats_servers import NatsServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    found = NatsServer(tmp_path / "nats")
    found.start()
    yield found
    found.kill()
