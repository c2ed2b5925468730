"""The index of logs, compared with a plain scan, through blocks, reorganisations and restarts.

Sections are made small, so that a few blocks fill and merge all sizes.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import Store, View
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage import section_index
from foreblock.ledger.storage.section_index import LOGS, Indexed, LogIndexing, Section, read_indexed
from support.chains.writing import PASSER, SCRIBE, Chain
from support.servers.asking import Asker, asker
from support.servers.long_work import thresholds
from support.strategies.log_queries import Json, all_logs, matching

CONTRACTS = (SCRIBE, PASSER)
SLOTS = 3


pytestmark = pytest.mark.usefixtures("small_sections")


def grow(chain: Chain, logs: list[tuple[int, int]]) -> None:
    """Seal a block with these logs, contract and slot, spread over two indices."""
    if chain.block.index == 0:
        chain.add(chain.deposit())
    for contract, slot in logs:
        chain.add(chain.write(CONTRACTS[contract], slot, 1))
    chain.seal(chain.deposit())


@contextmanager
def asking(store: Store) -> Iterator[Asker]:
    with asker(Ledger(store)) as client:
        yield client


def filters(last: int) -> Iterator[Json]:
    """Filters over the whole chain and parts of it."""
    addresses = [None, "0x" + SCRIBE.hex(), ["0x" + each.hex() for each in CONTRACTS]]
    topics = [
        None,
        [],
        [None],
        *([hex_word(slot)] for slot in range(SLOTS)),
        [[hex_word(0), hex_word(2)]],
    ]
    for first, end in ((0, last), (last // 3, last), (last // 2, last - last // 4)):
        for address in addresses:
            for some in topics:
                yield {
                    "fromBlock": hex(first),
                    "toBlock": hex(end),
                    "address": address,
                    "topics": some,
                }


def hex_word(number: int) -> str:
    return f"0x{number:064x}"


def check(store: Store) -> None:
    """Check that every filter gives the same result as a scan of the receipts."""
    with asking(store) as client:
        last = int(client.ask("eth_blockNumber"), 16)
        logs = all_logs(client, last)
        for each in filters(last):
            wanted = {name: value for name, value in each.items() if value is not None}
            plain = wanted | {
                "topics": [
                    [topic] if isinstance(topic, str) else topic
                    for topic in wanted.get("topics", [])
                ]
            }
            assert client.ask("eth_getLogs", wanted) == matching(logs, plain), wanted


BLOCKS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, SLOTS - 1)), max_size=3)
STEPS = st.lists(
    st.one_of(
        BLOCKS,
        BLOCKS,
        BLOCKS,
        st.just("turn"),
        st.just("all turns"),
        st.integers(1, 9),
        st.just("restart"),
    ),
    min_size=5,
    max_size=40,
)


@given(steps=STEPS)
def test_what_is_found_is_what_a_scan_finds(steps: list[object]) -> None:
    folder = Path(tempfile.mkdtemp())
    chain = Chain(folder / "store", keep_partials=2)
    indexing = LogIndexing(chain.store)
    for step in steps:
        match step:
            case list(logs):
                grow(chain, logs)
            case int(depth):
                chain.rewind(depth)
            case "turn":
                indexing.turn(chain.writer.latest.number)
            case "all turns":
                indexing.catch_up(chain.writer.latest.number)
                check(chain.store)
            case _:
                chain.reopen()
                indexing = LogIndexing(chain.store)
    check(chain.store)
    chain.run_until_idle()
    check(chain.store)
    chain.store.close()
    shutil.rmtree(folder)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    found = Chain(tmp_path / "store")
    yield found
    found.store.close()


def ends(store: Store) -> tuple[int, int, int]:
    with store.view() as view:
        return read_indexed(view).ends


def sections(view: View) -> list[Section]:
    """Sections with rows, each once."""
    found = view.rows(LOGS.key, 1000)
    return list(dict.fromkeys(section_index.section_of_key(key) for key, _ in found[1:]))


def section(size: int, first: int) -> Section:
    return Section(LOGS.key, size, first)


def test_sections_are_merged_and_their_parts_deleted(chain: Chain) -> None:
    for _ in range(13):
        grow(chain, [(0, 1)])
    LogIndexing(chain.store).catch_up(chain.writer.latest.number)
    with chain.store.view() as view:
        assert read_indexed(view).ends == (14, 12, 8)
        assert sections(view) == [section(0, 12), section(1, 8), section(2, 0)]


def test_the_index_is_read_and_the_headers_behind_it_are_not(chain: Chain) -> None:
    """A block with a removed entry is not found: this proves that the index was used."""
    for slot in (0, 1, 0, 1):
        grow(chain, [(0, slot)])
    LogIndexing(chain.store).catch_up(chain.writer.latest.number)
    assert ends(chain.store)[0] == 4
    with chain.store.view() as view:
        lost = [key for key, _ in view.rows(section(0, 2).prefix, 9)]
    chain.store.put_rows([], lost)
    with asking(chain.store) as client:
        asked = {"fromBlock": "0x0", "toBlock": "latest", "topics": [hex_word(0)]}
        assert [log["blockNumber"] for log in client.ask("eth_getLogs", asked)] == ["0x1"]


def test_a_rewind_lowers_the_ends_in_its_own_commit(chain: Chain) -> None:
    for _ in range(13):
        grow(chain, [(0, 1)])
    LogIndexing(chain.store).catch_up(chain.writer.latest.number)
    chain.rewind(0)
    assert ends(chain.store) == (14, 12, 8), "nothing was given up"
    chain.rewind(1)
    assert ends(chain.store) == (12, 12, 8)
    chain.rewind(3)
    assert ends(chain.store) == (8, 8, 8)
    chain.rewind(3)
    assert ends(chain.store) == (0, 0, 0)


def test_an_index_that_grew_before_the_rewind_was_committed_is_lowered_too(chain: Chain) -> None:
    for _ in range(5):
        grow(chain, [(0, 1)])
    with CommitBuilder(chain.store) as builder:
        builder.drop(chain.block.partials, "its parent was dropped")
        builder.rewind(3)
        LogIndexing(chain.store).catch_up(5)
        assert ends(chain.store) == (6, 4, 0)
        builder.commit()
    assert ends(chain.store) == (4, 4, 0)


def test_an_index_of_another_branch_counts_for_nothing(chain: Chain) -> None:
    """A version without indexing would leave it behind after a reorganisation."""
    for _ in range(4):
        grow(chain, [(0, 1)])
    LogIndexing(chain.store).catch_up(chain.writer.latest.number)
    with chain.store.view() as view:
        former = read_indexed(view)
    assert former.end == 4
    chain.store.put_rows([Indexed(LOGS.key, former.ends, b"\7" * 32).row], [])
    assert ends(chain.store) == (0, 0, 0)
    check(chain.store)
    LogIndexing(chain.store).catch_up(chain.writer.latest.number)
    assert ends(chain.store) == former.ends


def test_blocks_without_logs_are_noted_together(chain: Chain) -> None:
    indexing = LogIndexing(chain.store)
    for _ in range(3):
        grow(chain, [])
        indexing.catch_up(chain.writer.latest.number)
        assert ends(chain.store)[0] in (0, 4)
    assert ends(chain.store)[0] == 4
    with chain.store.view() as view:
        assert sections(view) == []


def test_turns_draw_no_number(chain: Chain) -> None:
    for _ in range(5):
        grow(chain, [(0, 1)])
    with chain.store.view() as view:
        before = view.heads.commit
    LogIndexing(chain.store).catch_up(5)
    with chain.store.view() as view:
        assert view.heads.commit == before
        assert read_indexed(view).end == 6


def test_long_clauses_are_looked_up_in_parts(chain: Chain) -> None:
    for slot in (0, 1, 2, 0, 1, 2):
        grow(chain, [(0, slot), (1, slot)])
    LogIndexing(chain.store).catch_up(chain.writer.latest.number)
    with thresholds(looked_up_terms=1, scanned_headers=1, scanned_receipts=1):
        check(chain.store)
