import errno
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate, repeat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import Transaction
from foreblock.sequencer.saved_pool import FORMAT, HEAD, save_pool, saved_pool
from support.chains.dev_chain import ACCOUNTS, DevChain, places, send

TRANSACTIONS = [send(who, nonce) for who in ACCOUNTS[:2] for nonce in (2, 0, 1)]


def taken(path: Path) -> list[Transaction]:
    """The transactions that a start restores."""
    with saved_pool(path) as found:
        return list(found)


def test_what_waited_comes_back_in_its_order_and_once(tmp_path: Path) -> None:
    path = tmp_path / "pool"
    assert save_pool(path, TRANSACTIONS) == 6
    assert taken(path) == TRANSACTIONS
    assert taken(path) == []
    assert list(tmp_path.iterdir()) == []


def test_there_may_be_no_file_and_no_transaction(tmp_path: Path) -> None:
    assert taken(tmp_path / "pool") == []
    save_pool(tmp_path / "pool", [])
    assert taken(tmp_path / "pool") == []


def test_a_start_that_fails_before_they_are_in_a_pool_loses_none(tmp_path: Path) -> None:
    path = tmp_path / "pool"
    save_pool(path, TRANSACTIONS)
    with suppress(KeyboardInterrupt), saved_pool(path) as found:
        assert list(found) == TRANSACTIONS
        assert path.exists(), "a kill would leave it, too"
        raise KeyboardInterrupt
    assert taken(path) == TRANSACTIONS
    assert not path.exists()


@given(data=st.data())
def test_of_a_damaged_file_the_rest_counts(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("saved") / "pool"
    save_pool(path, TRANSACTIONS)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    match data.draw(st.sampled_from(["flip", "cut", "insert"])):
        case "flip":
            content[at] ^= data.draw(st.integers(1, 255))
        case "cut":
            del content[at:]
        case _:
            content[at:at] = data.draw(st.binary(max_size=50))
    path.write_bytes(content)
    found = taken(path)
    assert set(found) <= set(TRANSACTIONS)
    assert found == [each for each in TRANSACTIONS if each in found], "in their order"
    ends = list(
        accumulate((HEAD.size + len(each.raw) for each in TRANSACTIONS), initial=len(FORMAT))
    )
    whole = sum(end <= at for end in ends[1:])
    assert found[:whole] == TRANSACTIONS[:whole], "what stands before the damage"
    if len(content) >= ends[-1]:
        rest = TRANSACTIONS[whole + (at >= ends[0]) :]
        assert found[len(found) - len(rest) :] == rest, "and after it"


def test_a_file_of_an_earlier_version_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pool"
    lines = [f"{each.hash.hex()} {each.raw.hex()}\n" for each in TRANSACTIONS]
    path.write_text("".join([*lines[:2], "damage\n", *lines[2:]]), encoding="ascii")
    assert taken(path) == TRANSACTIONS
    assert list(tmp_path.iterdir()) == []


def test_what_was_never_finished_goes_with_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "pool.part").write_bytes(b"half of")
    assert taken(tmp_path / "pool") == []
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    def full() -> Iterator[Transaction]:
        yield TRANSACTIONS[0]
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        save_pool(tmp_path / "pool", full())
    assert list(tmp_path.iterdir()) == []


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """One transaction at a time in both directions, for any pool size."""
    path, size, count = tmp_path / "pool", 100_000, 100
    large = send(ACCOUNTS[0], 0, data=bytes(size), gas=21_000 + 10 * size)
    tracemalloc.start()
    try:
        assert save_pool(path, repeat(large, count)) == count
        assert tracemalloc.get_traced_memory()[1] < 10 * size
        with saved_pool(path) as found:
            assert sum(1 for _ in found) == count
        assert tracemalloc.get_traced_memory()[1] < 10 * size
    finally:
        tracemalloc.stop()


def test_a_clean_stop_loses_nothing_that_waits(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store")
    gapped, ready = send(ACCOUNTS[0], 1), send(ACCOUNTS[1], 0)
    chain.submit(gapped, ready)
    save_pool(tmp_path / "pool", chain.sequencer.builder.pooled())
    chain.kill()
    chain.open()
    chain.submit(*taken(tmp_path / "pool"))
    first = send(ACCOUNTS[0], 0)
    chain.submit(first)
    assert set(places(chain.run(200))) == {gapped.raw, ready.raw, first.raw}
