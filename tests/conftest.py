"""Shared fixtures: the imported chains, and their files."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from foreblock.ledger.importing.chain_files import read_items
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from support import run_faster
from support.chains import long_chain as made
from support.servers.asking import Asker, asker

CHECKOUT = Path(__file__).resolve().parent.parent

# Examples have no deadline: their duration depends on the machine. Examples of one test may share
# fixtures. `make test` runs the same few examples every time; `--hypothesis-profile=thorough` runs
# many random ones.
_SHARED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("quick", _SHARED, max_examples=10, derandomize=True)
settings.register_profile("thorough", _SHARED, max_examples=400)
settings.load_profile("quick")

run_faster.keep_bytecode(CHECKOUT / ".pytest_cache" / "bytecode")
run_faster.keep_files_in_memory()
run_faster.cache_seeds()
gc.disable()  # until the tests are collected, as modules and tests are no garbage


# The default, except that rich takes tens of milliseconds for a traceback.
LOG_PROCESSORS: list[structlog.typing.Processor] = [
    structlog.processors.add_log_level,
    structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
]


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return one per core; `auto`, for tests that start processes and wait for them, has more."""
    waiting = 2 if config.option.numprocesses == "auto" else 0
    return len(os.sched_getaffinity(0)) + waiting


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    run_faster.order(items, CHECKOUT / "tests")


def pytest_collection_finish() -> None:
    gc.enable()
    run_faster.freeze_survivors()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    if nextitem is not None and nextitem.path != item.path:
        run_faster.freeze_survivors()


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Restore logging: its configuration affects all later tests, and loggers cache it."""
    structlog.configure(processors=LOG_PROCESSORS)
    yield
    for_good = structlog.get_config()["cache_logger_on_first_use"]
    structlog.reset_defaults()
    assert not for_good, "this test has configured logging in its own process"


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The folder of this checkout."""
    return CHECKOUT


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The folder of the published chain; tests that replay it are skipped without it."""
    named = os.environ.get("FOREBLOCK_CONFORMANCE")
    folder = Path(named) if named else CHECKOUT.parent / "shared" / "conformance"
    if not (folder / "chain.rlp").is_file():
        pytest.skip(f"no published chain at {folder}; FOREBLOCK_CONFORMANCE names another folder")
    return folder


@dataclass(frozen=True)
class ChainFiles:
    """The files of a chain in a folder: the input of `foreblock import`."""

    genesis: Path
    chain: Path
    fork_choice: Path

    def items(self) -> list[bytes]:
        """The blocks as bytes, block 1 first."""
        with self.chain.open("rb") as file:
            return [item.data for item in read_items(file)]

    def options(self, data: Path) -> list[str]:
        """The options of `foreblock import` for this chain."""
        return [
            f"--genesis={self.genesis}",
            f"--chain={self.chain}",
            f"--fork-choice={self.fork_choice}",
            f"--data={data}",
        ]


@pytest.fixture(scope="session")
def published(conformance: Path) -> ChainFiles:
    """The published chain: 54 blocks through every fork."""
    return ChainFiles(
        conformance / "genesis.json", conformance / "chain.rlp", conformance / "headfcu.json"
    )


@pytest.fixture(scope="session")
def example() -> ChainFiles:
    """The example chain of this checkout: 12 blocks through every fork."""
    folder = CHECKOUT / "examples" / "chain"
    return ChainFiles(folder / "genesis.json", folder / "chain.rlp", folder / "head.json")


@pytest.fixture(scope="session")
def long_chain(tmp_path_factory: pytest.TempPathFactory) -> ChainFiles:
    """A generated chain for tests without special requirements: 54 blocks through every fork."""
    folder = tmp_path_factory.mktemp("long")
    made.write(folder)
    return ChainFiles(folder / "genesis.json", folder / "chain.rlp", folder / "head.json")


@contextmanager
def imported(files: ChainFiles, folder: Path) -> Iterator[Ledger]:
    """A chain, imported and opened for reading."""
    import_files(files.genesis, files.chain, folder, files.fork_choice, lambda _: None)
    ledger = Ledger.open(str(folder))
    yield ledger
    ledger.close()


@pytest.fixture(scope="session")
def long_ledger(
    long_chain: ChainFiles, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ledger]:
    """The long chain, opened for reading."""
    with imported(long_chain, tmp_path_factory.mktemp("long") / "store") as ledger:
        yield ledger


@pytest.fixture(scope="session")
def preconf(long_ledger: Ledger) -> Iterator[Asker]:
    """A client of the long chain in the published contract."""
    with asker(long_ledger, "preconf") as client:
        yield client


@pytest.fixture(scope="session")
def ethereum(long_ledger: Ledger) -> Iterator[Asker]:
    """A client of the long chain with the responses of other nodes."""
    with asker(long_ledger, "ethereum") as client:
        yield client


@pytest.fixture(scope="session")
def published_ledger(
    published: ChainFiles, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ledger]:
    """The published chain, opened for reading: only for comparison with published data."""
    with imported(published, tmp_path_factory.mktemp("published") / "store") as ledger:
        yield ledger


@pytest.fixture(scope="session")
def published_preconf(published_ledger: Ledger) -> Iterator[Asker]:
    """A client of the published chain in the published contract."""
    with asker(published_ledger, "preconf") as client:
        yield client


@pytest.fixture(scope="session")
def published_ethereum(published_ledger: Ledger) -> Iterator[Asker]:
    """A client of the published chain with the responses of other nodes."""
    with asker(published_ledger, "ethereum") as client:
        yield client
