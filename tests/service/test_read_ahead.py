"""Commits of a chain that is written in the same process are read before the next request."""

import asyncio
import inspect
from pathlib import Path

from foreblock.bus.bus_client import BusClient
from foreblock.bus.bus_server import BusServer
from foreblock.bus.messages import Committed
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.open_store import Anchor, begin_at
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.scheduling.admission import WorkerBudget
from foreblock.service.app import WrittenStore, make_served
from foreblock.settings import Settings
from foreblock.settings.loading import load
from foreblock.settings.networks import Network
from foreblock.sources.network_store import open_followed_store
from support.chains.dev_chain import ACCOUNTS, DevChain, send
from support.servers.asking import ANYBODY, body_of, request

BALANCE = request("eth_getBalance", "0x" + ACCOUNTS[0].address.hex(), "latest")


def test_a_fork_block_has_nothing_to_read_ahead(tmp_path: Path) -> None:
    async def scene() -> None:
        failures: list[dict[str, object]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, failure: failures.append(failure))
        with DevChain(tmp_path / "other").store.view() as view:
            (header, _), config = read_header(view, 0), view.row(rows.CONFIG)
        assert config is not None
        network = Network(name="main", data=str(tmp_path / "store"), source="store")
        store = open_followed_store(network, None)
        begin_at(store, Anchor(header), config)
        writer, link = BusServer(lambda *_: None, list), BusClient("")
        link.connect_directly(writer)
        settings = load(Settings, {"data": "none", "workers": "1"}, {}).settings
        written = [WrittenStore(store)]
        make_served(settings, [network], link, WorkerBudget(), [SeenCommit()], written=written)
        writer.broadcast(Committed("main", 1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not failures

    asyncio.run(scene())


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
