"""Reading a part of a real block finds all its effects; a mirror applies them exactly."""

import random
from collections.abc import Iterator

import pytest

from foreblock import DevChain
from foreblock._engine import BlockExecution, Overlay, View
from foreblock.ledger.building.real_index import (
    RealBlock,
    changed_keys,
    read_blocks,
    read_real_index,
    take_over,
)
from foreblock.ledger.rules.execution import environment
from foreblock.ledger.storage.chain_head import read_header, stored_profile
from foreblock.ledger.storage.mirror_rows import StateKey

BOB = b"\xb0" * 20


@pytest.fixture
def chain() -> Iterator[DevChain]:
    with DevChain(mode="manual") as chain:
        choice = random.Random(5)
        for _ in range(4):
            for _ in range(choice.randrange(1, 4)):
                sender = choice.choice(chain.accounts)
                chain.send(BOB, value=choice.randrange(9), sender=sender)
            chain.send(None, data="0x6001600055600a6000f3")  # it writes a slot
            chain.set_storage(BOB, choice.randrange(3), choice.randrange(9))
            chain.flashblock()
        chain.seal()
        yield chain


@pytest.fixture
def view(chain: DevChain) -> Iterator[View]:
    with chain._network._source.store.view() as view:
        yield view


def block_of(view: View) -> RealBlock:
    block, *_ = read_blocks(view, 1)
    assert len(block.partials) > 4
    return block


def test_parts_of_a_block_make_its_header(view: View) -> None:
    block, profile = block_of(view), stored_profile(view)
    header, _ = read_header(view, 1)
    rules = profile.rules(1, header.timestamp, merged=True)
    env = environment(header, rules, profile)
    execution = BlockExecution(Overlay.empty(), env)
    since = None
    for last in (*block.partials[1::2], block.partials[-1]):
        part = RealBlock(block.base, block.partials[: block.partials.index(last) + 1])
        index = read_real_index(view, part, since, optimism=True)
        execution.adopt(index.transactions, index.receipts, gas_before=index.gas_before)
        since = last
    assert execution.fill(header) == header
    assert execution.gas_used == header.gas_used


def test_cumulative_gas_counts_what_came_before(view: View) -> None:
    block, profile = block_of(view), stored_profile(view)
    header, _ = read_header(view, 1)
    rules = profile.rules(1, header.timestamp, merged=True)
    execution = BlockExecution(Overlay.empty(), environment(header, rules, profile))
    whole = read_real_index(view, block, None, optimism=True)
    for _ in range(2):
        execution.adopt(whole.transactions, whole.receipts, gas_before=0)
    assert execution.gas_used == 2 * header.gas_used
    *_, receipts, _ = execution.take()
    again = BlockExecution(Overlay.empty(), environment(header, rules, profile))
    half = len(receipts) // 2
    again.adopt(whole.transactions, receipts[half:], gas_before=header.gas_used)
    assert again.fill(header) == header


def test_changes_of_parts_are_those_of_the_block(view: View) -> None:
    block = block_of(view)
    whole = dict.fromkeys(changed_keys(view.changes_of_partial(block.partials[-1])))
    parts: dict[StateKey, None] = {}
    since = None
    for last in block.partials:
        parts |= dict.fromkeys(changed_keys(view.changes_of_partial(last, since)))
        since = last
    assert parts.keys() >= whole.keys()
    overlays = [view.state(0).overlay() for _ in range(2)]
    index = read_real_index(view, block, None, optimism=True)
    take_over(overlays[0], index.accounts, lambda _: False)
    since = None
    for count in range(1, len(block.partials) + 1):
        part = RealBlock(block.base, block.partials[:count])
        accounts = read_real_index(view, part, since, optimism=True).accounts
        take_over(overlays[1], accounts, lambda _: False)
        since = part.partials[-1]
    state = view.state(1)
    for address, slot in parts:
        for overlay in overlays:
            if slot is not None:
                assert overlay.storage(address, slot) == state.storage(address, slot)
                continue
            found, expected = overlay.account(address), state.account(address)
            assert (found is None) == (expected is None)
            if found is not None and expected is not None:
                assert found.nonce == expected.nonce
                assert found.balance == expected.balance
                assert overlay.code(address) == state.code(address)


def test_local_keys_are_left_as_they_are(view: View) -> None:
    index = read_real_index(view, block_of(view), None, optimism=True)
    overlay, keys = view.state(0).overlay(), {(BOB, None), (BOB, 1)}
    overlay.set(BOB, balance=77, state_diff={1: 5})
    take_over(overlay, index.accounts, keys.__contains__)
    account = overlay.account(BOB)
    assert account is not None
    assert (account.balance, overlay.storage(BOB, 1)) == (77, 5)
    assert overlay.storage(BOB, 0) == view.state(1).storage(BOB, 0)
    assert overlay.storage(BOB, 2) == view.state(1).storage(BOB, 2)
