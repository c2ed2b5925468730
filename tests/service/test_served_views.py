"""The view at each path of a network, from its settings and those of the service."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from conftest import ChainFiles
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Handler, Reply
from foreblock.service.app import make_served
from foreblock.service.network_views import NODE_PATH, settings_at_root, settings_of_node
from foreblock.settings import Settings
from foreblock.settings.loading import load
from foreblock.settings.networks import Network
from support.servers.asking import ANYBODY, request

WITHOUT_A_BLOCK = request("eth_getBalance", "0x" + "11" * 20)


def loaded(**told: str) -> Settings:
    return load(Settings, {"data": "none", "workers": "1", **told}, {}).settings


def network(**own: Any) -> Network:  # noqa: ANN401, fields of any type
    return Network(**{"name": "main", "data": "none", "source": "store", **own})


@pytest.fixture
def store(example: ChainFiles, tmp_path: Path) -> str:
    """One per test: a process opens a store once, and a service keeps it open."""
    found = tmp_path / "store"
    import_files(example.genesis, example.chain, found, example.fork_choice, lambda _: None)
    return str(found)


@pytest.mark.parametrize(
    ("told", "own", "at_root"),
    [({}, {}, -32602), ({"dialect": "ethereum"}, {}, None), ({}, {"dialect": "ethereum"}, None)],
)
def test_dialect_at_the_root_is_chosen_and_at_the_other_path_is_that_of_nodes(
    store: str, told: dict[str, str], own: dict[str, str], at_root: int | None
) -> None:
    async def scene() -> None:
        (served,) = make_served(
            loaded(**told), [network(data=store, **own)], None, WorkerBudget(), [SeenCommit()]
        )
        assert await code(served.answer) == at_root
        assert await code(served.at_paths[NODE_PATH]) is None

    asyncio.run(scene())


async def code(handler: Handler) -> int | None:
    """The error code, if any, of a request without a block."""
    reply = handler(WITHOUT_A_BLOCK, ANYBODY)
    assert isinstance(reply, Reply)
    found: dict[str, Any] = json.loads(reply.body)
    return found["error"]["code"] if "error" in found else None


def test_view_at_the_root_is_the_network_s_own_or_that_of_the_service() -> None:
    sealed, plain = loaded(view="sealed", dialect="ethereum"), loaded()
    assert (plain.view, plain.dialect) == ("preconfirmed", "preconf")
    assert settings_at_root(plain, network()) == plain
    assert settings_at_root(sealed, network()) == sealed
    assert settings_at_root(sealed, network(view="preconfirmed", dialect="preconf")) == plain
    assert settings_at_root(plain, network(view="sealed", dialect="ethereum")) == sealed
    assert settings_of_node(plain) == settings_of_node(sealed) == sealed
