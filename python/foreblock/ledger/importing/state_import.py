"""Begin a store with a whole state: a dump in JSON lines, and the header that it belongs to.

The store is made in a hidden folder beside its place, and renamed when it is complete and
durable: after a failure or an interruption nothing is left. The engine reads, sorts and checks
the dump (`StateImport`) on a thread, so that progress can be shown. The first block is known by
its header only; BLOCKHASH of the blocks before it is answered from headers that are given, and
from the contract of EIP-2935 in the state itself.
"""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Final

from foreblock._engine import Batch, Header, Heads, Overlay, State, StateImport, Store
from foreblock.errors import BadGenesis, BadState, StoreExists
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.execution import HISTORY_STORAGE
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.rules.header_rules import ANCESTORS_NEEDED
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import header_entries, header_rows, rules_of
from foreblock.ledger.storage.copy_store import LOCK, sync
from foreblock.ledger.storage.store_watch import DATA_FILE

MEMORY: Final = 384 << 20  # bytes of records that are sorted at a time
REACH: Final = 256  # blocks that BLOCKHASH looks back
HISTORY: Final = 8191  # slots of the contract of EIP-2935

_LOOK_SECONDS: Final = 0.1
_RUNS: Final = "runs"

# The stage, how much of it is done, and how much there is.
Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class ImportStart:
    """The first block of a store, and the rules of its chain."""

    headers: Sequence[Header]  # of consecutive blocks; the state is that after the last
    total_difficulty: int | None  # of the last; may be none after the merge
    config: bytes  # the section of a genesis, as JSON text

    @property
    def header(self) -> Header:
        return self.headers[-1]


@dataclass(frozen=True, slots=True)
class ImportedState:
    """A store that was begun."""

    heads: Heads
    accounts: int
    slots: int


def config_of_genesis(text: bytes) -> bytes:
    """The configuration in a genesis file, or in a file that has nothing else; `BadGenesis`."""
    root = JsonValue.parse(text, BadGenesis)
    config = root.get("config") or root
    read_profile(config)
    return config.text()


def import_state(
    dump: Path, start: ImportStart, data: Path, report: Report, *, memory: int = MEMORY
) -> ImportedState:
    """Make a store in a new or empty folder; raises `BadState`, `BadGenesis`, `StoreExists`."""
    profile = read_profile(JsonValue.parse(start.config, BadGenesis))
    difficulty = _check(start, profile)
    if data.is_symlink() or (data.exists() and not _is_empty_folder(data)):
        raise StoreExists(str(data))
    data.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{data.name}.", suffix=".part", dir=data.parent))
    try:
        (folder / _RUNS).mkdir()
        with Store(str(folder), write=True, sync=False) as store:
            done = _fill(store, dump, start, folder / _RUNS, report, memory)
            _begin(store, start, difficulty)
            done.adopt_nodes()
            store.put_ancestor_hashes(_hashes_below(store, start))
            with store.view() as view:
                imported = ImportedState(view.heads, done.accounts, done.slots)
        _put(folder, data)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return imported


def _check(start: ImportStart, profile: ChainProfile) -> int:
    """Run the checks that need no dump; return the total difficulty."""
    header, headers = start.header, start.headers
    if header.number == 0:
        raise BadState(0, "the header is that of block 0, which a genesis begins")
    for before, after in pairwise(headers):
        if (after.number, after.parent_hash) != (before.number + 1, before.hash):
            why = f"the header of block {after.number} does not follow that of {before.number}"
            raise BadState(0, why)
    difficulty = start.total_difficulty
    if difficulty is None:
        if header.difficulty:
            why = "the header is of a mined block, and its total difficulty is not given"
            raise BadState(0, why)
        difficulty = profile.terminal_total_difficulty or 0
    rules = rules_of(header, difficulty, profile)
    if rules.ethereum < EthereumFork.PRAGUE:
        _check_reach(header.number, {each.number: each.hash for each in headers})
    return difficulty


def _check_reach(number: int, known: dict[int, bytes]) -> None:
    """All blocks that BLOCKHASH may ask for must be known: it may not give 0 for one that is."""
    for each in range(number - 2, max(number - REACH, 0) - 1, -1):
        if each not in known:
            first = max(number - REACH, 0)
            why = (
                f"the hash of block {each} is not known: give the headers of blocks {first} to"
                f" {number}, which BLOCKHASH may ask for"
            )
            raise BadState(0, why)


def _fill(
    store: Store, dump: Path, start: ImportStart, runs: Path, report: Report, memory: int
) -> StateImport:
    """Read the dump in the engine on a thread, and report the progress."""
    header = start.header
    running = StateImport(store, header.number, header.state_root, str(runs), memory=memory)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            running.run(str(dump))
        except BaseException as failure:  # noqa: BLE001, raised where it is waited for
            failures.append(failure)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        is_over = False
        while not is_over:
            thread.join(_LOOK_SECONDS)
            is_over = not thread.is_alive()  # before the last check, which sees all of it
            report(*running.progress)
    except BaseException:
        running.stop()
        thread.join()
        raise
    if failures:
        raise failures[0]
    return running


def _begin(store: Store, start: ImportStart, difficulty: int) -> None:
    """Add the first block, whose state the tables have."""
    header, batch = start.header, store.batch()
    changes = Overlay.empty().take(batch.next)
    batch.append(header.number, header.hash, changes, None, header_entries(header))
    for key, value in header_rows(header, difficulty):
        batch.put(key, value)
    if header.difficulty:
        _put_ancestors(batch, start.headers, difficulty)
    batch.put(rows.CONFIG, start.config)
    store.commit(batch)


def _put_ancestors(batch: Batch, headers: Sequence[Header], difficulty: int) -> None:
    """Keep the headers that uncles of the next blocks may name as their parents."""
    for child, parent in zip(headers[:0:-1], headers[-2::-1], strict=True):
        if headers[-1].number - parent.number >= ANCESTORS_NEEDED:
            break
        difficulty -= child.difficulty
        batch.put(rows.header_key(parent.number), rows.encode_header_row(parent, difficulty))


def _hashes_below(store: Store, start: ImportStart) -> list[tuple[int, bytes]]:
    """The hashes of the blocks before the first, as far back as BLOCKHASH looks."""
    header = start.header
    with store.view() as view:
        known = _history(view.state(header.number), header)
    known |= {each.number: each.hash for each in start.headers[:-1]}
    known |= {each.number - 1: each.parent_hash for each in start.headers}
    _check_reach(header.number, known)
    lowest = max(header.number - REACH, 0)
    return sorted((number, each) for number, each in known.items() if number >= lowest)


def _history(state: State, header: Header) -> dict[int, bytes]:
    """Hashes in the contract of EIP-2935, if it has that of the parent where it belongs."""

    def hash_of(number: int) -> bytes:
        return state.storage(HISTORY_STORAGE, number % HISTORY).to_bytes(32)

    if hash_of(header.number - 1) != header.parent_hash:
        return {}
    numbers = range(max(header.number - REACH, 0), header.number)
    found = {number: hash_of(number) for number in numbers}
    return {number: each for number, each in found.items() if any(each)}


def _put(folder: Path, data: Path) -> None:
    """Make the store durable, and give it its name."""
    shutil.rmtree(folder / _RUNS)
    (folder / LOCK).unlink(missing_ok=True)
    folder.chmod(0o755)
    sync(folder / DATA_FILE)
    sync(folder)
    folder.rename(data)
    sync(data.parent)


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
