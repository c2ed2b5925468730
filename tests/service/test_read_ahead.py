"""Commits of a chain that is written in the same process are read before the next request."""

import asyncio
from pathlib import Path

from foreblock.bus.bus_client import BusClient
from foreblock.bus.bus_server import BusServer
from foreblock.bus.messages import Committed
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.scheduling.admission import WorkerBudget
from foreblock.service.app import make_served
from foreblock.settings import Settings
from foreblock.settings.loading import load
from foreblock.settings.networks import Network
from support.chains.dev_chain import ACCOUNTS, DevChain, send
from support.servers.asking import ANYBODY, request

BODY = request("eth_getBalance", "0x" + ACCOUNTS[0].address.hex(), "latest")


def test_the_fast_path_answers_the_first_request_after_a_commit(tmp_path: Path) -> None:
    async def scene() -> None:
        chain = DevChain(tmp_path / "store", mining="automine")
        writer, link = BusServer(lambda *_: None, list), BusClient("")
        link.connect_directly(writer)
        settings = load(Settings, {"data": "none", "workers": "1"}, {}).settings
        network = Network(name="main", data=str(tmp_path / "store"), source="store")
        (served,) = make_served(
            settings, [network], link, WorkerBudget(), [SeenCommit()], written=[chain.store]
        )
        fast_path = served.fast_path
        fast_path.cache_head(b"head", len(BODY), b"", b"")

        def balance() -> bytes | None:
            answer = fast_path.answer(b"head\r\n\r\n" + BODY, b"")
            return None if answer is None else answer.rpartition(b"\r\n")[2]

        served.answer(BODY, ANYBODY)
        before = balance()
        assert before is not None
        chain.submit(send(ACCOUNTS[0], 0))
        chain.sequencer.run_immediate()
        assert balance() is None, "the commit was not read before"
        writer.broadcast(Committed("main", chain.writer.last_commit))
        assert balance() is None, "who waits for it is answered first"
        await asyncio.sleep(0)
        assert balance() not in {None, before}

    asyncio.run(scene())
