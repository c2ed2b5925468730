"""Subscriptions and filters compared with geth: its errors, and the form of its notifications.

`subscriptions_of_geth.json` was recorded from geth v1.17.2 with `--dev`, over WebSocket.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from foreblock.ledger.reading.view import Ledger
from foreblock.service.network_views import Service, make_scheduler
from foreblock.settings import Settings
from support.chains.preconfirming import COUNTER, PreconfirmingChain
from support.servers.in_loop import run, turns
from support.servers.sessions import Connection

Json = Any
RECORDED = json.loads(Path(__file__).with_name("subscriptions_of_geth.json").read_text("utf-8"))
# If geth forwards its decoder's text, or names no argument, foreblock's text names the error.
OTHER_WORDS = (
    "json: cannot unmarshal", "missing value for required", "hex has invalid length",
    "hex string without 0x prefix", "invalid topic(s)", "invalid address",
)  # fmt: skip


def asked(folder: Path, *requests: tuple[str, list[Json]]) -> list[Json]:
    """The responses of a service to requests on one connection."""
    chain = PreconfirmingChain(folder / "store")
    options = Settings(dialect="ethereum")
    scheduler = make_scheduler(options)
    service = Service(Ledger(chain.store, clock=chain.clock), options, scheduler)
    answers = []

    async def body() -> None:
        client = Connection(service.open_session)
        for method, params in requests:
            item = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            answers.append(await client.send(json.dumps(item).encode()))

    run(body)
    scheduler.close()
    chain.close()
    return answers


def test_what_geth_refuses_is_refused_as_geth_does(tmp_path: Path) -> None:
    recorded = RECORDED["answers"]
    found = asked(tmp_path, *((each["method"], each["params"]) for each in recorded))
    for ours, theirs in zip(found, recorded, strict=True):
        if "result" in theirs:
            result = ours["result"]
            assert result is False if theirs["result"] is False else result.startswith("0x")
            continue
        assert ours["error"]["code"] == theirs["error"]["code"], theirs
        message = theirs["error"]["message"]
        if not any(words in message for words in OTHER_WORDS):
            assert ours["error"]["message"] == message


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("newHeads", ["newHeads"]),
        ("logs", ["logs", {}]),
        ("hashes", ["newPendingTransactions"]),
        ("full", ["newPendingTransactions", True]),
    ],
)
def test_notifications_have_the_form_of_geth(tmp_path: Path, name: str, params: list[Json]) -> None:
    chain = PreconfirmingChain(tmp_path / "store")
    chain.begin()
    options = Settings(dialect="ethereum")
    scheduler = make_scheduler(options)
    service = Service(Ledger(chain.store, clock=chain.clock), options, scheduler)

    async def body() -> None:
        client = Connection(service.open_session)
        await client.ask("eth_subscribe", *params)
        await turns()
        chain.extend([chain.pay(COUNTER, 7)])
        chain.begin()
        (ours,) = await client.notifications(1)
        theirs = RECORDED["forms"][name]["params"]
        assert set(ours) == {*theirs, "cursor"}
        if isinstance(theirs["result"], str):
            assert len(ours["result"]) == len(theirs["result"])
            return
        # A field of a fork that neither chain has is null there and omitted here.
        assert set(ours["result"]) == set(theirs["result"]) - {"slotNumber"}
        for field, value in theirs["result"].items():
            if field != "slotNumber":
                assert type(ours["result"][field]) is type(value) or field == "to"

    run(body)
    scheduler.close()
    chain.close()
