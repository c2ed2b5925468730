"""What tests of methods share: chains of both rule sets to simulate on."""

from collections.abc import Iterator

import pytest

from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from support.chains.simulation_chain import Chain, build_optimism


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
