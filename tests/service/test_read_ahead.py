"""Commits of a chain that is written in the same process are read before the next request."""

import asyncio
import inspect
from pathlib import Path

from foreblock.bus.bus_client import BusClient
from foreblock.bus.bus_server import BusServer
from foreblock.bus.messages import Committed
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.scheduling.admission import WorkerBudget
from foreblock.service.app import WrittenStore, make_served
from foreblock.settings import Settings
from foreblock.settings.loading import load
from foreblock.settings.networks import Network
from support.chains.dev_chain import ACCOUNTS, DevChain, send
from support.servers.asking import ANYBODY, body_of, request

BALANCE = request("eth_getBalance", "0x" + ACCOUNTS[0].address.hex(), "latest")


def test_the_fast_path_answers_the_first_request_after_a_commit(tmp_path: Path) -> None:
    async def scene() -> None:
        chain = DevChain(tmp_path / "store", mining="automine")
        writer, link = BusServer(lambda *_: None, list), BusClient("")
        link.connect_directly(writer)
        settings = load(Settings, {"data": "none", "workers": "1"}, {}).settings
        network = Network(name="main", data=str(tmp_path / "store"), source="store")
        (served,) = make_served(
            settings,
            [network],
            link,
            WorkerBudget(),
            [SeenCommit()],
            written=[WrittenStore(chain.store)],
        )
        fast_path, sent = served.fast_path, send(ACCOUNTS[0], 0)
        receipt = request("eth_getTransactionReceipt", "0x" + sent.hash.hex())

        def short(body: bytes) -> bytes | None:
            fast_path.cache_head(b"head", len(body), b"", b"")
            answer = fast_path.answer(b"head\r\n\r\n" + body, b"")
            return None if answer is None else answer.rpartition(b"\r\n")[2]

        served.answer(BALANCE, ANYBODY)
        before = short(BALANCE)
        assert before is not None
        chain.submit(sent)
        chain.sequencer.run_immediate()
        assert short(BALANCE) is None, "the commit was not read before"
        writer.broadcast(Committed("main", chain.writer.last_commit))
        assert short(BALANCE) is None, "who waits for it is answered first"
        await asyncio.sleep(0)
        assert short(BALANCE) not in {None, before}
        found = short(receipt)
        assert found is not None
        reply = served.answer(receipt, ANYBODY)
        assert found == body_of(await reply if inspect.isawaitable(reply) else reply)

    asyncio.run(scene())
