"""A growing block: its header after each index."""

from dataclasses import replace
from pathlib import Path

import pytest

from foreblock._engine import (
    Block,
    decode_receipt,
    keccak256,
    logs_bloom,
    transactions_root,
)
from foreblock.errors import BadBlock, InvalidTransaction
from foreblock.ledger.rules.check import EMPTY_ROOT
from foreblock.ledger.storage import partial_rows, rows
from foreblock.types import Base, Flashblock
from support.chains.importing import import_bytes
from support.chains.profiles import JOVIAN
from support.chains.writing import (
    DEPOSITOR,
    ETHER,
    HISTORY,
    NOBODY,
    PASSER,
    SCRIBE,
    SENDERS,
    WITNESS,
    Chain,
    genesis,
    payload_id,
)
from support.payloads import rlp

ZERO_HASH = bytes(32)


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    return Chain(tmp_path / "store")


def recipe(base: Base, last: Flashblock, transactions: list[bytes]) -> bytes:
    """The hash of a partial block, by the published recipe."""
    diff = last.diff
    uncles = bytes.fromhex("1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347")
    requests = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    fields: list[bytes | int] = [
        base.parent_hash, uncles, base.fee_recipient, diff.state_root,
        transactions_root(transactions), diff.receipts_root, diff.logs_bloom, 0,
        base.block_number, base.gas_limit, diff.gas_used, base.timestamp, base.extra_data,
        base.prev_randao, bytes(8), base.base_fee_per_gas, diff.withdrawals_root,
        diff.blob_gas_used, 0, base.parent_beacon_block_root, requests,
    ]  # fmt: skip
    return keccak256(rlp.encode([rlp.encode(each) for each in fields]))


def test_first_index_carries_the_base_and_the_others_do_not(chain: Chain) -> None:
    first = chain.add(chain.deposit())
    second = chain.add(chain.signed())
    assert first.base == chain.block.base
    assert second.base is None
    assert (first.index, second.index) == (0, 1)
    assert first.payload_id == second.payload_id == payload_id(chain.writer.latest.hash)
    assert first.block_number == second.block_number == 1


def test_hashes_of_partials_follow_the_published_recipe(chain: Chain) -> None:
    transactions: list[bytes] = []
    first = chain.add(chain.deposit(mint=ETHER))
    assert first.base is not None
    for flashblock in (
        first,
        chain.add(chain.write(SCRIBE, 1, 2), chain.write(PASSER, 3, 4, who=1)),
        chain.add(),
        chain.add(*[chain.signed(who) for who in range(3)]),
    ):
        transactions += flashblock.diff.transactions
        assert flashblock.diff.state_root == ZERO_HASH
        assert flashblock.diff.block_hash == recipe(first.base, flashblock, transactions)


def test_amounts_grow_and_belong_to_the_block_so_far(chain: Chain) -> None:
    first = chain.add(chain.deposit())
    second = chain.add(chain.signed())
    third = chain.add(chain.write(SCRIBE, 1, 2))
    assert first.diff.gas_used == 21_000
    assert second.diff.gas_used == 42_000
    assert third.diff.gas_used > 42_000
    # 400 per byte of the minimum size of 100 bytes; deposits do not count.
    footprints = [each.diff.blob_gas_used for each in (first, second, third)]
    assert footprints == [0, 40_000, 80_000]
    assert chain.block.count == 3
    assert (chain.block.gas_used, chain.block.da_footprint) == (third.diff.gas_used, 80_000)


def test_bloom_and_receipts_root_cover_all_indices(chain: Chain) -> None:
    chain.add(chain.deposit(), chain.write(SCRIBE, 1, 2))
    chain.add(chain.signed(1))
    last = chain.add(chain.write(SCRIBE, 5, 6))
    with chain.store.view() as view:
        receipts = []
        for partial in chain.block.partials:
            row = view.row(partial_rows.receipts_key(1, partial))
            assert row is not None
            receipts += [decode_receipt(each) for each in rows.decode_items(row)]
    assert len(receipts) == 4
    assert last.diff.receipts_root == transactions_root([each.encode() for each in receipts])
    assert last.diff.logs_bloom == logs_bloom(receipts)
    assert [bool(receipt.logs) for receipt in receipts] == [False, True, False, True]
    assert receipts[0].deposit_nonce == 0
    assert receipts[0].deposit_receipt_version == 1


def test_withdrawals_root_moves_with_the_message_passers_storage(chain: Chain) -> None:
    before = chain.add(chain.deposit(), chain.write(SCRIBE, 1, 2)).diff.withdrawals_root
    # Of a trie with the single slot 0 = 1, computed elsewhere.
    assert before.hex() == "821e2556a290c86405f8160a2d662042a431ba456b9db265c79bb837c04be5f0"
    touched = chain.add(chain.write(PASSER, 7, 8)).diff.withdrawals_root
    assert touched != before
    assert chain.add(chain.signed()).diff.withdrawals_root == touched
    # Also in the first index of a block whose parent is not sealed yet, and back again.
    first = chain.seal(chain.deposit(PASSER, data=(7).to_bytes(32) + (9).to_bytes(32)))
    assert first.diff.withdrawals_root not in (before, touched)
    assert chain.add(chain.write(PASSER, 7, 0)).diff.withdrawals_root == before


def test_invalid_transaction_changes_nothing(chain: Chain) -> None:
    chain.add(chain.deposit())
    late = chain.signed()
    chain.block.run([late])
    before = (chain.block.count, chain.block.gas_used, chain.block.open_count)
    with pytest.raises(InvalidTransaction, match="nonce"):
        chain.block.run([late])
    assert (chain.block.count, chain.block.gas_used, chain.block.open_count) == before
    assert chain.add().diff.transactions == (late.raw,)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"parent_hash": bytes(32)}, "parent hash"),
        ({"block_number": 7}, "number"),
        ({"timestamp": 0}, "time"),
        ({"base_fee_per_gas": 1}, "base fee"),
        ({"extra_data": b""}, "extra data"),
    ],
)
def test_base_that_cannot_follow_is_refused(
    chain: Chain, changes: dict[str, object], text: str
) -> None:
    base = replace(chain.base(), **changes)  # type: ignore[arg-type]
    with pytest.raises(BadBlock, match=text):
        chain.writer.begin(base, bytes(8))


def test_state_of_the_block_so_far_is_that_of_its_last_partial(chain: Chain) -> None:
    chain.add(chain.deposit(mint=3 * ETHER, value=ETHER))
    assert chain.block.storage(SCRIBE, 1) == 0
    chain.add(chain.write(SCRIBE, 1, 2))
    assert chain.block.storage(SCRIBE, 1) == 2
    with chain.store.view() as view:
        state = view.state_of_partial(chain.block.partials[-1])
        for address in (DEPOSITOR, NOBODY, SENDERS[0], SENDERS[1]):
            now, stored = chain.block.account(address), state.account(address)
            assert (now is None) == (stored is None)
            if now is not None and stored is not None:
                assert (now.nonce, now.balance) == (stored.nonce, stored.balance)


def test_message_passers_root_begins_with_isthmus_and_footprints_with_jovian(
    tmp_path: Path,
) -> None:
    """A chain that activates both forks while it is written."""
    config = JOVIAN | {"isthmusTime": 4, "jovianTime": 6}
    chain = Chain(tmp_path / "store", config)
    seen, blocks = [], []
    chain.add(chain.deposit(), chain.signed())
    for _ in range(3):
        header = chain.writer.header_if_sealed(chain.block)
        raws = chain.transactions(header.number, chain.block.partials)
        blocks.append(Block(header, raws, (), ()).encode())
        seen.append((header.withdrawals_root, header.requests_hash is None, header.blob_gas_used))
        chain.seal()
        chain.add(chain.deposit(), chain.signed())
    one_slot = bytes.fromhex("821e2556a290c86405f8160a2d662042a431ba456b9db265c79bb837c04be5f0")
    assert seen == [(EMPTY_ROOT, True, 0), (one_slot, False, 0), (one_slot, False, 40_000)]
    assert import_bytes(tmp_path / "imported", genesis(config), b"".join(blocks)).blocks == 3


@pytest.mark.parametrize("reopen", [False, True])
def test_contracts_see_the_hash_of_the_sealed_parent(chain: Chain, *, reopen: bool) -> None:
    """Before the parent is sealed, in the same commit, and afterwards."""
    chain.add(chain.deposit())
    sealed = chain.writer.header_if_sealed(chain.block)
    chain.seal(chain.deposit(WITNESS))
    assert chain.block.storage(WITNESS, 2).to_bytes(32) == sealed.hash
    if reopen:
        chain.reopen()
    chain.add(chain.signed(0, WITNESS, 0))
    assert chain.block.storage(WITNESS, 2).to_bytes(32) == sealed.hash


def test_next_block_sees_the_sealed_parent(chain: Chain) -> None:
    """EIP-2935 stores the hash of the sealed parent, not that of a partial block."""
    chain.add(chain.deposit())
    chain.seal()
    with chain.store.view() as view:
        partial = chain.block.partials[0]
        stored = view.state_of_partial(partial).storage(HISTORY, 2)
        assert stored.to_bytes(32) == chain.writer.latest.hash
        assert view.state_of_partial(partial).block_hash(1) == chain.writer.latest.hash
