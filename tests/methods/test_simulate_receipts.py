"""Receipts of simulated blocks before Byzantium have state roots, like those of real blocks.

A real block simulated again on its parent must have the receipts of the chain: its calls are its
transactions, and its `receiptsRoot` was made by the chain's author.
"""

from collections.abc import Iterator

import pytest

from conftest import ChainFiles
from differential.known import plain
from differential.payloads import Base
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from support.servers.asking import Asker, asker

FIELDS = ("from", "to", "gas", "gasPrice", "value", "input", "nonce")
BEFORE_BYZANTIUM = {"example": range(1, 3), "published": range(1, 9)}


@pytest.fixture(scope="module", params=BEFORE_BYZANTIUM)
def chain(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Asker, range]]:
    """A client of a chain, and the chain's blocks before Byzantium."""
    files: ChainFiles = request.getfixturevalue(request.param)
    folder = tmp_path_factory.mktemp("receipts") / "store"
    import_files(files.genesis, files.chain, folder, files.fork_choice, lambda _: None)
    ledger = Ledger.open(str(folder))
    with asker(ledger, "ethereum", call_gas_cap=0) as client:
        yield client, BEFORE_BYZANTIUM[request.param]
    ledger.close()


def test_a_real_block_simulated_anew_has_its_real_receipts(chain: tuple[Asker, range]) -> None:
    client, numbers = chain
    for number in numbers:
        real = client.ask("eth_getBlockByNumber", hex(number), True)
        receipts = client.ask("eth_getBlockReceipts", hex(number))
        assert receipts
        assert all("root" in each for each in receipts), "the chain has such blocks"
        (found,) = client.ask("eth_simulateV1", again(real), hex(number - 1))
        assert found["receiptsRoot"] == real["receiptsRoot"]


def again(block: dict[str, object]) -> object:
    """A payload that repeats the transactions of a block."""
    transactions = block["transactions"]
    assert isinstance(transactions, list)
    calls = [
        {name: each[name] for name in FIELDS if each[name] is not None} for each in transactions
    ]
    changes = {
        "feeRecipient": block["miner"], "time": block["timestamp"], "gasLimit": block["gasLimit"],
    }  # fmt: skip
    return {"blockStateCalls": [{"blockOverrides": changes, "calls": calls}]}


def test_the_comparison_with_geth_leaves_nothing_of_them_out() -> None:
    first = Base(number=0, time=0)
    assert not first.unhashed
    names = {"number": "0x1", "receiptsRoot": "0x12", "hash": "0x34"}
    answer, other = ([{**names, "calls": [], "transactions": []}] for _ in range(2))
    assert plain(answer, other, unhashed=first.unhashed)[0][0].items() >= names.items()
