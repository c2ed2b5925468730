"""A second service behind the feed of a chain: in the end it serves what the chain does."""

import threading
from collections.abc import Callable, Iterator

import pytest

from foreblock import Client, DevChain
from foreblock.dev_chain import FollowedDevChain
from foreblock.errors import NotHere, SequencerUnavailable
from support.each_case import each_case

BOB = b"\xb0" * 20
PREDEPLOYED = "0x7E57000000000000000000000000000000000020"
BALANCE_OF = "balanceOf(address)(uint256)"


@pytest.fixture
def followed() -> Iterator[FollowedDevChain]:
    with DevChain(mode="manual") as chain:
        yield FollowedDevChain(chain, chain.follow())


def test_it_is_behind_until_it_is_waited_for(followed: FollowedDevChain) -> None:
    chain, follower = followed
    chain.send(BOB, value=5)
    flashblock = chain.flashblock()
    assert follower.at("pending").balance(BOB) == 0
    with pytest.raises(NotHere):
        follower.at(flashblock.hash).balance(BOB)
    followed.wait()
    assert follower.at("pending").balance(BOB) == follower.at(flashblock.hash).balance(BOB) == 5
    assert (follower.balance(BOB), follower.block().number) == (0, 0)
    sealed = chain.seal()
    followed.wait()
    assert follower.block().json == sealed.json
    assert follower.balance(BOB) == 5
    assert follower.rpc("eth_getBlockReceipts", "0x1") == chain.rpc("eth_getBlockReceipts", "0x1")


def lose_tail(chain: DevChain) -> None:
    chain.drop_tail()


def restart(chain: DevChain) -> None:
    chain.restart_block()


def reorganise(chain: DevChain) -> None:
    chain.seal(2)
    chain.reorg(2)


@each_case("fault", [lose_tail, restart, reorganise])
def test_it_loses_what_the_chain_has_lost(fault: Callable[[DevChain], None]) -> None:
    with DevChain(mode="manual") as chain:
        follower = chain.follow()
        chain.send(BOB, value=5)
        lost = chain.flashblock()
        follower.wait()
        assert follower.at(lost.position).balance(BOB) == 5
        fault(chain)
        follower.wait()
        assert follower.at("pending").balance(BOB) == 0
        assert follower.block().hash == chain.block().hash
        chain.seal()  # the payment waited
        follower.wait()
        assert follower.balance(BOB) == 5
        assert follower.block().hash == chain.block().hash


def test_a_reorganisation_that_it_has_seen_replaces_its_blocks(followed: FollowedDevChain) -> None:
    chain, follower = followed
    chain.send(BOB, value=5)
    old = chain.seal(3)
    followed.wait()
    assert (follower.block().hash, follower.balance(BOB)) == (old.hash, 5)
    chain.reorg(3)
    followed.wait()
    assert (follower.block().number, follower.balance(BOB)) == (3, 0)
    assert follower.block().hash == chain.block().hash != old.hash


def test_accounts_that_are_set_by_hand_reach_it(followed: FollowedDevChain) -> None:
    chain, follower = followed
    chain.deal_erc20(PREDEPLOYED, BOB, 50)
    chain.set_balance(BOB, 7)
    followed.wait()
    assert follower.at("pending").balance(BOB) == 7
    chain.seal()
    followed.wait()
    assert follower.call(PREDEPLOYED, BALANCE_OF, BOB) == 50
    assert follower.block().hash == chain.block().hash


def test_an_account_that_it_has_missed_stops_it(followed: FollowedDevChain) -> None:
    chain, follower = followed
    follower.disconnect()
    chain.set_balance(chain.accounts[0], 10**18)
    chain.send(BOB, value=5)
    chain.seal(40)
    followed.wait()
    assert (follower.block().number, follower.balance(BOB)) == (0, 0)


def test_a_chain_that_has_returned_to_a_snapshot_replaces_its_blocks(
    followed: FollowedDevChain,
) -> None:
    chain, follower = followed
    with chain.snapshot():
        chain.send(BOB, value=5)
        chain.seal(2)
        followed.wait()
        assert (follower.block().number, follower.balance(BOB)) == (2, 5)
    chain.send(BOB, value=6)
    chain.seal()
    followed.wait()
    assert (follower.block().hash, follower.balance(BOB)) == (chain.block().hash, 6)


def test_without_the_feed_it_has_sealed_blocks_only(followed: FollowedDevChain) -> None:
    chain, follower = followed
    follower.disconnect()
    chain.send(BOB, value=5)
    chain.flashblock()
    followed.wait()
    assert follower.at("pending").balance(BOB) == 0
    chain.seal(40)
    followed.wait()
    assert (follower.block().hash, follower.balance(BOB)) == (chain.block().hash, 5)


def test_it_resumes_in_the_block_in_progress(followed: FollowedDevChain) -> None:
    chain, follower = followed
    for value in (1, 2, 4):
        chain.send(BOB, value=value)
        chain.flashblock()
        if value == 1:
            followed.wait()
            follower.disconnect()
    followed.wait()
    assert follower.at("pending").balance(BOB) == 1
    follower.reconnect()
    followed.wait()
    assert follower.at("pending").balance(BOB) == 7
    assert follower.outcomes.get("Duplicate", 0) == 0, "it asked for those that it lacked"


def test_messages_that_it_had_not_received_are_lost(followed: FollowedDevChain) -> None:
    chain, follower = followed
    chain.send(BOB, value=1)
    chain.flashblock()
    follower.disconnect()
    followed.wait()
    assert follower.at("pending").balance(BOB) == 0


FAULTS = [
    ("garbage", "Malformed"),
    ("duplicate", "Duplicate"),
    ("equivocate", "Equivocation"),
    ("reorder", "Gap"),
]


@each_case("fault, outcome", FAULTS)
def test_faults_of_the_feed_reach_it(fault: str, outcome: str) -> None:
    with DevChain(mode="clock", faults=(f"{fault}=0.5",)) as chain:
        follower = chain.follow()
        for _ in range(4):
            chain.send(BOB, value=1)
            chain.advance(2)
            follower.wait()
        assert follower.outcomes[outcome] > 0
        assert follower.block().hash == chain.block().hash


def test_a_message_that_is_never_sent_leaves_it_behind_until_the_block_is_sealed() -> None:
    with DevChain(mode="manual", faults=("drop=1",)) as chain:
        follower = chain.follow()
        chain.send(BOB, value=5)
        chain.flashblock()
        follower.wait()
        assert follower.at("pending").balance(BOB) == 0
        chain.seal()
        follower.wait()
        assert follower.balance(BOB) == 5
        chain.rpc("foreblock_setFaults", {})
        chain.send(BOB, value=5)
        chain.flashblock()
        chain.seal()  # the next block begins with a message
        chain.send(BOB, value=5)
        chain.flashblock()
        follower.wait()
        assert follower.at("pending").balance(BOB) == 15


def test_a_delayed_message_comes_with_time() -> None:
    with DevChain(mode="clock", faults=("delay=1",)) as chain:
        follower = chain.follow()
        chain.send(BOB, value=5)
        while chain.at("pending").balance(BOB) == 0:
            chain.advance(0.05)
        follower.wait()
        assert follower.at("pending").balance(BOB) == 0
        chain.advance(1.5)
        follower.wait()
        assert follower.at("pending").balance(BOB) == 5


def test_every_mode_and_rules_can_be_followed() -> None:
    for rules in ("ethereum", "optimism"):
        with DevChain(rules) as chain:
            chain.send(BOB, value=5)
            follower = chain.follow()  # of a chain that has begun
            chain.send(BOB, value=6)
            follower.wait()
            assert (follower.balance(BOB), follower.block().hash) == (11, chain.block().hash)


def test_it_only_reads(followed: FollowedDevChain) -> None:
    chain, follower = followed
    raw = chain.rpc(
        "eth_signTransaction",
        {"from": f"0x{chain.accounts[0].hex()}", "to": f"0x{BOB.hex()}", "value": "0x1"},
    )
    with pytest.raises(SequencerUnavailable):
        follower.rpc("eth_sendRawTransaction", raw)


def test_it_is_served_and_leaves_no_thread() -> None:
    threads = threading.active_count()
    with DevChain() as chain:
        follower = chain.follow()
        with Client(follower.serve().url) as client:
            chain.send(BOB, value=1)
            assert client.balance(BOB) == 0
            follower.wait()
            assert client.balance(BOB) == 1
    assert threading.active_count() == threads
