"""A chain for each test, and the token contract of the client tests on it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock import DevChain
from foreblock.dev_chain import Contract

BOB = b"\xb0" * 20


@pytest.fixture
def dev() -> Iterator[DevChain]:
    with DevChain() as chain:
        yield chain


@pytest.fixture(scope="session")
def compiled(checkout: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((checkout / "tests/clients/token.json").read_bytes())
    return found


@pytest.fixture
def token(dev: DevChain, compiled: dict[str, Any]) -> Contract:
    return dev.deploy(compiled["initCode"], compiled["abi"])
