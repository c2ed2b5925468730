"""A chain to fork."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from foreblock import DevChain
from support.upstreams.forked import BOB, OpenUpstream, Rules, Upstream
from support.upstreams.relay import relayed


@pytest.fixture(scope="session")
def compiled(checkout: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((checkout / "tests/clients/token.json").read_bytes())
    return found


@pytest.fixture
def open_upstream(compiled: dict[str, Any]) -> Iterator[OpenUpstream]:
    with ExitStack() as opened:

        def made(rules: Rules) -> Upstream:
            chain = opened.enter_context(DevChain(rules=rules))
            token = chain.deploy(compiled["initCode"], compiled["abi"])
            chain.send(BOB, value=5)
            token.send("transfer", BOB, 7)
            server = opened.enter_context(chain.serve())
            relay = opened.enter_context(relayed(server.url))
            return Upstream(chain, token, compiled["abi"], compiled["initCode"], relay)

        yield made


@pytest.fixture
def upstream(open_upstream: OpenUpstream) -> Upstream:
    return open_upstream("ethereum")
