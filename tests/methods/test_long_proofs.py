"""Requests for the maximum number of proofs and slots do not block the loop.

Measured in CPU time of the loop's thread between two turns of others.
"""

import asyncio
import inspect
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ChainFiles
from foreblock._engine import Store
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.service.network_views import Service, make_scheduler
from foreblock.settings import Settings
from support.chains import long_chain as made
from support.servers.asking import ANYBODY, body_of, request

LONGEST = 0.01  # seconds of one turn; a thousand proofs at once take several times as long
TRIES = 3
KEYS = [hex(slot) for slot in range(1024)]
WORDS = [f"0x{slot:064x}" for slot in range(1024)]
REQUESTS = {
    "new proofs": request("eth_getProof", made.EMITTER, KEYS, "latest"),
    "old proofs": request("eth_getProof", made.EMITTER, KEYS, hex(made.HEAD - 5)),
    "slots": request("eth_getStorageValues", {made.EMITTER: WORDS}, "latest"),
}


@pytest.fixture(scope="module")
def ledger(long_chain: ChainFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """The long chain, with the nodes of the last two blocks."""
    folder: Path = tmp_path_factory.mktemp("proofs") / "store"
    import_files(long_chain.genesis, long_chain.chain, folder, None, lambda _: None)
    with Store(str(folder), write=True, keep_nodes=2) as store:
        while store.maintain(100_000, 1.0):
            pass
    opened = Ledger.open(str(folder))
    yield opened
    opened.close()


@pytest.mark.parametrize("name", REQUESTS)
def test_no_turn_is_long(ledger: Ledger, name: str) -> None:
    options = Settings()
    scheduler = make_scheduler(options)
    service = Service(ledger, options, scheduler)

    async def longest_turn() -> float:
        begun = time.thread_time()
        reply = service.answer(REQUESTS[name], ANYBODY)
        turns = [time.thread_time() - begun]
        if inspect.isawaitable(reply):
            task = asyncio.ensure_future(reply)
            while not task.done():
                begun = time.thread_time()
                await asyncio.sleep(0)
                turns.append(time.thread_time() - begun)
            reply = task.result()
        assert b'"result"' in body_of(reply)[:100]
        return max(turns)

    async def tries() -> list[float]:
        return [await longest_turn() for _ in range(TRIES)]

    found = asyncio.run(tries())
    scheduler.close()
    assert min(found) < LONGEST, found
