"""A chain with unknown rules from a block on: the methods that still respond, and the others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ChainFiles
from foreblock._engine import Store
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.availability import network_status
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.rules.profile import RulesEnd
from foreblock.ledger.storage import follow_rows
from foreblock.ledger.storage.follow_rows import RULES_END, put_rules_end, read_rules_end
from foreblock.status.network_status import RulesStatus
from support.chains.long_chain import EMITTER, HEAD, RICH
from support.servers.asking import Asker, asker, error

SINCE = 50
END = error(-32000, "this chain has rules that foreblock does not know (since block 50)")
CALL = {"to": EMITTER}


def put(folder: Path, end: RulesEnd | None) -> None:
    with Store(str(folder), write=True) as store:
        batch = store.batch()
        put_rules_end(batch, end)
        batch.draw()
        store.commit(batch)


@pytest.fixture
def folder(long_chain: ChainFiles, tmp_path: Path) -> Path:
    import_files(long_chain.genesis, long_chain.chain, tmp_path / "store", None, lambda _: None)
    return tmp_path / "store"


@pytest.fixture
def client(folder: Path) -> Iterator[Asker]:
    put(folder, RulesEnd(SINCE, "fork lagoon"))
    ledger = Ledger.open(str(folder))
    with asker(ledger) as client:
        yield client
    ledger.close()


@pytest.mark.parametrize("block", ["latest", "pending", hex(SINCE), hex(HEAD)])
def test_nothing_is_executed_from_that_block_on(client: Asker, block: str) -> None:
    assert client.ask("eth_call", CALL, block) == END
    assert client.ask("eth_estimateGas", CALL, block) == END
    assert client.ask("eth_createAccessList", CALL, block) == END
    assert client.ask("eth_simulateV1", {"blockStateCalls": [{"calls": [CALL]}]}, block) == END
    assert client.ask("debug_traceCall", CALL, block, {}) == END
    assert client.ask("trace_call", CALL, ["trace"], block) == END


def test_no_block_is_executed_again_from_that_one_on(client: Asker) -> None:
    assert client.ask("debug_traceBlockByNumber", hex(SINCE)) == END
    assert client.ask("trace_replayBlockTransactions", hex(HEAD), ["trace"]) == END
    assert isinstance(client.ask("debug_traceBlockByNumber", hex(SINCE - 1)), list)


def test_blocks_before_it_are_executed_as_ever(client: Asker) -> None:
    before = hex(SINCE - 1)
    assert client.ask("eth_call", CALL, before) == "0x"
    # A simulation after the last known block would be in the first unknown one.
    request = {"blockStateCalls": [{"calls": [CALL]}]}
    assert client.ask("eth_simulateV1", request, before) == END
    assert isinstance(client.ask("eth_simulateV1", request, hex(SINCE - 2)), list)


def test_pending_is_refused_by_every_method(client: Asker) -> None:
    assert client.ask("eth_getBalance", RICH, "pending") == END
    assert client.ask("eth_getTransactionCount", RICH, "pending") == END
    assert client.ask("eth_getBlockByNumber", "pending", False) == END


def test_blocks_receipts_and_state_go_on(client: Asker) -> None:
    block = client.ask("eth_getBlockByNumber", "latest", True)
    assert block["number"] == hex(HEAD)
    assert client.ask("eth_getBalance", RICH, "latest").startswith("0x")
    for transaction in block["transactions"]:
        assert client.ask("eth_getTransactionReceipt", transaction["hash"])["status"] == "0x1"
    assert client.ask("eth_getProof", RICH, [], "latest")["accountProof"]
    assert client.ask("eth_getLogs", {"fromBlock": hex(SINCE), "toBlock": "latest"})


def test_readiness_says_why(folder: Path) -> None:
    put(folder, RulesEnd(SINCE, "fork lagoon"))
    ledger = Ledger.open(str(folder))
    found = network_status(ledger, "main", "store", 0)
    ledger.close()
    assert found.chain is not None
    assert found.chain.rules_end == RulesStatus(SINCE, "fork lagoon")


def test_rules_that_are_known_again_are_executed(folder: Path) -> None:
    put(folder, RulesEnd(SINCE, "fork lagoon"))
    put(folder, None)
    ledger = Ledger.open(str(folder))
    with asker(ledger) as client:
        assert client.ask("eth_call", CALL, "latest") == "0x"
    ledger.close()


def test_another_version_tries_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = RulesEnd(SINCE, "its execution differs: gas used \u2260")
    put(folder, end)
    with Store(str(folder)) as store, store.view() as view:
        assert read_rules_end(view) == end
        monkeypatch.setattr(follow_rows, "current_version", lambda: "999.0")
        assert read_rules_end(view) is None
        assert view.row(RULES_END) is not None


def test_fast_path_answers_nothing(folder: Path) -> None:
    """Repeated requests: a formerly fast request does not bypass the rule."""
    put(folder, RulesEnd(SINCE, "fork lagoon"))
    ledger = Ledger.open(str(folder))
    with asker(ledger) as client:
        for _ in range(5):
            assert client.ask("eth_call", CALL, "latest") == END
            assert client.ask("eth_getBalance", RICH, "pending") == END
    ledger.close()
