"""eth_getLogs over random logs, compared with geth 1.17.2: recorded by
`tests/differential/logs.py`.

A result is recorded as its length and hash, an error unchanged.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.section_index import read_indexed
from support.chains import log_chain
from support.servers.asking import Asker, asker
from support.strategies.log_queries import Json, all_logs, digest, queries

ANSWERS = Path(__file__).parent / "logs_of_geth.json"
COUNT = 400


def recorded_queries(client: Asker) -> list[Json]:
    """The filters with recorded results."""
    blocks = range(log_chain.BLOCKS + 1)
    hashes = [client.ask("eth_getBlockByNumber", hex(each), False)["hash"] for each in blocks]
    chance = random.Random(1)
    return queries(chance, all_logs(client, log_chain.BLOCKS), hashes, COUNT)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    folder = tmp_path_factory.mktemp("logs")
    log_chain.write(folder)
    files = (folder / "genesis.json", folder / "chain.rlp", folder / "store")
    import_files(*files, None, lambda _: None)
    found = Ledger.open(str(folder / "store"))
    yield found
    found.close()


def test_answers_are_those_of_geth(ledger: Ledger) -> None:
    answers = json.loads(ANSWERS.read_text("utf-8"))
    with asker(ledger, "ethereum") as client:
        asked = recorded_queries(client)
        assert len(asked) == len(answers)
        for each, expected in zip(asked, answers, strict=True):
            assert digest(client.ask("eth_getLogs", each)) == expected, each


def test_sections_of_two_sizes_are_in_use(ledger: Ledger) -> None:
    view = ledger.view()
    assert read_indexed(view.stored).ends == (336, 256, 0)
    view.close()
