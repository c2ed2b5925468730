"""Followers of a chain with state edits, with and without trust in them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from foreblock.bus.commands import IncreaseTime, Mine, SetAccount
from foreblock.errors import MalformedFlashblock
from foreblock.feed.messages import decode, encode
from foreblock.types import StateEdit
from support.chains.checking import DevFollower, heads
from support.chains.dev_chain import ACCOUNTS, DevChain, send

SOMEBODY = b"\xab" * 20


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[DevChain]:
    chain = DevChain(tmp_path / "chain", mining="automine")
    yield chain
    chain.kill()


def edit_and_mine(chain: DevChain) -> None:
    chain.execute(SetAccount(SOMEBODY, (7).to_bytes(32), 3, b"\x60\x01", {bytes(32): b"\x05" * 32}))
    chain.execute(IncreaseTime(60))
    chain.submit(send(ACCOUNTS[0], 0))
    chain.execute(Mine())


def test_one_that_believes_ends_in_the_same_blocks(tmp_path: Path, chain: DevChain) -> None:
    follower = DevFollower(tmp_path / "follower", chain, accept_state_edits=True)
    edit_and_mine(chain)
    follower.catch_up()
    assert follower.heads == heads(chain.store)
    assert "Diverged" not in follower.follower.counters
    with follower.store.view() as view:
        state = view.state(1)
        assert (state.balance(SOMEBODY), state.storage(SOMEBODY, 0)) == (7, int("05" * 32, 16))
    follower.close()


def test_one_that_does_not_finds_a_wrong_state_root(tmp_path: Path, chain: DevChain) -> None:
    follower = DevFollower(tmp_path / "follower", chain, accept_state_edits=False)
    chain.execute(SetAccount(SOMEBODY, (7).to_bytes(32)))
    follower.catch_up()
    counters = follower.follower.counters
    assert (counters["StateEdits"], counters["Diverged"]) == (1, 1)
    assert follower.heads[1] == (1, chain.published[0].diff.block_hash)
    edit_and_mine(chain)
    follower.catch_up()
    latest, _ = follower.heads
    assert latest is not None
    assert latest[0] == 0, "it does not follow a chain that it finds wrong"
    follower.close()


def test_other_state_edits_than_those_of_the_root_are_refused(
    tmp_path: Path, chain: DevChain
) -> None:
    follower = DevFollower(tmp_path / "follower", chain, accept_state_edits=True)
    chain.execute(SetAccount(SOMEBODY, (7).to_bytes(32)))
    chain.published[1] = replace(chain.published[1], edits=(StateEdit(SOMEBODY, 8),))
    follower.catch_up()
    assert follower.follower.counters["Diverged"] == 1
    follower.close()


def test_state_edits_that_cannot_be_read_are_malformed(chain: DevChain) -> None:
    chain.execute(SetAccount(SOMEBODY, (7).to_bytes(32)))
    text = encode(chain.published[1])
    assert b'"foreblock":{"state_edits":[{"address":"0xabab' in text
    for wrong in (b'"balance":"0x07"', b'"balance":7', b'"nonce":"0x10000000000000000"'):
        with pytest.raises(MalformedFlashblock, match=r"metadata\.foreblock"):
            decode(text.replace(b'"balance":"0x7"', wrong))
