"""A development chain in the writer, across restarts."""

import asyncio
import errno
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from foreblock._engine import Store, Transaction
from foreblock.bus.commands import Mine, SendUnsigned, SetMining
from foreblock.bus.messages import NextNonce, ToWorker
from foreblock.clock import DrivenClock
from foreblock.errors import BadGenesis, PoolRefusal
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.genesis.genesis_file import (
    GENESIS_FILE,
    GenesisAccount,
    genesis_text,
    read_genesis,
)
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.rules.forks import EthereumFork, Rules
from foreblock.ledger.storage.partial_rows import decode_partial_row, partial_key
from foreblock.sequencer.dev_genesis import dev_genesis
from foreblock.sequencer.faults.feed import FeedSink
from foreblock.sequencer.sequencer import Sequencer
from foreblock.settings import ChainSettings
from foreblock.settings.networks import Network
from foreblock.sources import dev_network
from foreblock.sources.dev_network import (
    POOL_FILE,
    DevChainSource,
    open_dev_network,
    open_dev_source,
)
from support.chains.dev_chain import ACCOUNTS, GENESIS_TIME, SECOND, sealed_blocks, send

QUIET = FeedSink(lambda _: None, lambda _: None)
GAPPED = [send(ACCOUNTS[0], nonce) for nonce in (1, 2, 3)]


def started(folder: Path, genesis: str = "", **options: Any) -> DevChainSource:  # noqa: ANN401, of the chain
    """A new or continued chain, as in a new process."""
    return DevChainSource(made(folder, genesis, **options), driven(), QUIET)


def driven() -> DrivenClock:
    return DrivenClock(GENESIS_TIME * SECOND, 5 * SECOND)


def made(folder: Path, genesis: str = "", **options: Any) -> Network:  # noqa: ANN401, of the chain
    """A network with a development chain."""
    chain = ChainSettings(genesis=genesis, **options)
    return Network(name="main", data=str(folder), source="dev", dev=chain)


def test_a_start_that_fails_loses_nothing_of_the_saved_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = started(tmp_path)
    for each in GAPPED:
        source.submit(each.raw, each.sender)
    source.close()
    del source
    assert (tmp_path / POOL_FILE).exists()

    def fails(_sequencer: Sequencer, transaction: Transaction) -> None:
        if transaction == GAPPED[1]:
            raise OSError("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(Sequencer, "submit", fails)
        with pytest.raises(OSError, match="the disk is gone"):
            started(tmp_path)
    again = started(tmp_path)
    assert again.waiting == len(GAPPED)
    assert not (tmp_path / POOL_FILE).exists(), "it is for one start"
    again.close()


def test_workers_hear_the_nonces_after_a_saved_pool(tmp_path: Path) -> None:
    """Both workers that are connected when the chain begins, and those that connect later."""
    source = started(tmp_path, mining="manual")
    for each in (send(ACCOUNTS[0], 0), send(ACCOUNTS[0], 1), send(ACCOUNTS[1], 0)):
        source.submit(each.raw, each.sender)
    source.close()
    del source
    told: list[ToWorker] = []

    async def begin_again() -> list[ToWorker]:
        network = made(tmp_path, mining="manual")
        writer = await open_dev_network(network, driven(), None, told.append)
        hints = list(writer.hints())
        await writer.close()
        return hints

    hints = asyncio.run(begin_again())
    assert {(each.sender, each.nonce) for each in hints if isinstance(each, NextNonce)} == {
        (ACCOUNTS[0].address, 2),
        (ACCOUNTS[1].address, 1),
    }
    assert told == hints


def test_under_karst_a_transaction_has_at_most_the_gas_of_osaka(tmp_path: Path) -> None:
    """Rejected when it is sent, with geth's message, since no block would include it."""
    document = json.loads(genesis_text(dev_genesis(ChainSettings())))
    document["config"] |= {"karstTime": 0, "osakaTime": 0}
    (tmp_path / "karst.json").write_text(json.dumps(document))
    source = started(tmp_path / "store", str(tmp_path / "karst.json"))
    most, more = (send(ACCOUNTS[0], nonce, gas=2**24 + nonce) for nonce in (0, 1))
    source.submit(most.raw, most.sender)
    with pytest.raises(PoolRefusal) as refusal:
        source.submit(more.raw, more.sender)
    words = "transaction gas limit too high (cap: 16777216, tx: 16777217)"
    assert str(refusal.value) == words
    source.close()


def test_order_and_impersonation_are_settings(tmp_path: Path) -> None:
    source = started(tmp_path, order="fifo", auto_impersonate=True, mining="automine")
    stranger = b"\xaa" * 20
    asked = SendUnsigned(stranger, ACCOUNTS[0].address, bytes(32), b"", 21_000)
    assert isinstance(source.execute(asked), bytes)
    source.execute(SetMining("manual"))
    cheap, dear = send(ACCOUNTS[0], 0, tip=1), send(ACCOUNTS[1], 0, tip=10**9)
    better = send(ACCOUNTS[0], 0, tip=2, cap=10**12)
    for each in (cheap, dear):
        source.submit_next(each.raw, each.sender)
    assert source.next_nonces() == {ACCOUNTS[0].address: 1, ACCOUNTS[1].address: 1}
    with pytest.raises(PoolRefusal, match="replacement transaction underpriced"):
        source.submit_next(better.raw, better.sender)
    source.execute(Mine())
    store = source.store
    assert list(sealed_blocks(store)[-1].transactions[1:]) == [cheap.raw, dear.raw]
    source.close()


def test_a_pool_that_cannot_be_saved_is_told_and_the_store_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = started(tmp_path)
    source.submit(GAPPED[0].raw, GAPPED[0].sender)

    def fails(path: Path, _transactions: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as full, capture_logs() as logged:
        full.setattr(dev_network, "save_pool", fails)
        source.close()
    (told,) = [each for each in logged if each["event"] == "pool_not_saved"]
    assert told["count"] == 1
    assert "No space left on device" in told["why"]
    again = started(tmp_path)  # `source` still refers to the previous store
    assert again.waiting == 0
    again.close()


def test_a_store_is_closed_whatever_the_writer_fails_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = started(tmp_path)

    def fails(_writer: LedgerWriter) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(LedgerWriter, "close", fails)
        with pytest.raises(ZeroDivisionError):
            source.close()
    started(tmp_path).close()


def test_a_chain_begins_with_the_rules_the_time_and_the_accounts_that_are_asked_for(
    tmp_path: Path,
) -> None:
    rich = "0x" + "ee" * 20
    (tmp_path / "alloc.json").write_text(json.dumps({rich: {"balance": "0x7"}}))
    options: dict[str, Any] = {"rules": "ethereum", "fork": "cancun", "timestamp": 1_000}
    source = started(tmp_path / "store", alloc=str(tmp_path / "alloc.json"), **options)
    source.tick()
    source.close()
    written = read_genesis((tmp_path / "store" / GENESIS_FILE).read_bytes())
    assert written.rules == Rules(EthereumFork.CANCUN)
    assert written.timestamp == 1_000
    assert written.accounts[bytes.fromhex(rich[2:])] == GenesisAccount(balance=7)
    with Store(str(tmp_path / "store")) as store, store.view() as view:
        assert view.heads.pending is not None
        row = view.row(partial_key(1, view.heads.pending))
        assert row is not None
        assert decode_partial_row(row).header.timestamp == 1_002, "time continues from there"


def test_a_file_of_accounts_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadGenesis, match=r"nowhere\.json: No such file"):
        started(tmp_path / "store", alloc=str(tmp_path / "nowhere.json"))


def test_who_is_served_first_sees_how_blocks_are_mined_and_a_pending_block(tmp_path: Path) -> None:
    async def opened() -> None:
        executor = ThreadPoolExecutor(1)
        network, clock = made(tmp_path, mining="mixed"), driven()
        source = await open_dev_source(network, clock, None, executor)
        with closing(Ledger(source.store, clock=clock).view()) as view:
            assert view.dev_state is not None
            assert view.dev_state.mining == "automine"
            assert view.dev_state.also_clock
            assert view.pending is not None
            assert view.pending.number == 1
        source.close()
        executor.shutdown()

    asyncio.run(opened())


def test_a_chain_whose_first_commit_fails_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_source: DevChainSource) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(DevChainSource, "tick", fails)
    with pytest.raises(OSError, match="the disk is gone"):
        asyncio.run(open_dev_source(made(tmp_path), driven(), None, ThreadPoolExecutor(1)))
    monkeypatch.undo()
    started(tmp_path).close()  # it can be written again
