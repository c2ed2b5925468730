from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dev_chain import ACCOUNTS, DevChain, places, send
from foreblock._engine import Transaction
from foreblock.sequencer.saved_pool import save_pool, saved_pool

TRANSACTIONS = [send(who, nonce) for who in ACCOUNTS[:2] for nonce in (2, 0, 1)]


def taken(path: Path) -> list[Transaction]:
    """What a start takes up."""
    with saved_pool(path) as found:
        return found


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
        assert found == TRANSACTIONS
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
    whole = content[:at].count(b"\n")
    assert found[:whole] == TRANSACTIONS[:whole], "what stands before the damage"


def test_a_clean_stop_loses_nothing_that_waits(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store")
    gapped, ready = send(ACCOUNTS[0], 1), send(ACCOUNTS[1], 0)
    chain.submit(gapped, ready)
    save_pool(tmp_path / "pool", chain.sequencer.pooled())
    chain.kill()
    chain.open()
    chain.submit(*taken(tmp_path / "pool"))
    first = send(ACCOUNTS[0], 0)
    chain.submit(first)
    assert set(places(chain.run(200))) == {gapped.raw, ready.raw, first.raw}
