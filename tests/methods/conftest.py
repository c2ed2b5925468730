"""Chains of both rule sets for simulation, and a client of a test's chain."""

from collections.abc import Iterator

import pytest

from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from support.chains.preconfirming import PreconfirmingChain
from support.chains.simulation_chain import Chain, build_optimism
from support.servers.asking import Asker, asker


@pytest.fixture(scope="module", params=["ethereum", "optimism"])
def chain(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Chain]:
    """The long chain, and a small one of the other rule set."""
    folder = tmp_path_factory.mktemp("chain") / "store"
    if request.param == "ethereum":
        files = request.getfixturevalue("long_chain")
        import_files(files.genesis, files.chain, folder, files.fork_choice, lambda _: None)
    else:
        build_optimism(folder)
    ledger = Ledger.open(str(folder))
    yield Chain(ledger, folder / "data.mdb")
    ledger.close()


@pytest.fixture
def client(chain: PreconfirmingChain) -> Iterator[Asker]:
    """A client of the chain from the test module's fixture."""
    with asker(Ledger(chain.store, clock=chain.clock)) as found:
        yield found
