"""Every committed partial block can be pinned, and keeps its state permanently.

Expected values do not come from the store: amounts are sums of transfers, and the sender's balance
is that of the block in progress when its index was closed.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from foreblock._engine import keccak256
from foreblock.errors import (
    DroppedPartial,
    NotCanonical,
    NotHere,
    UnknownBlock,
    UnknownBlockHash,
    UnknownPartial,
)
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.importing.importer import Chain
from foreblock.ledger.reading.blocks import BlockId, ByHash, ByIndex, PreconfirmedBlock, SealedBlock
from foreblock.ledger.reading.stored_block import read_stored
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.partial_rows import PartialRow
from support.chains.builder import ChainBuilder
from support.chains.preconfirming import COUNTER, PAID, SENDER, PreconfirmingChain
from support.payloads import rlp

RUNTIME = bytes.fromhex("602a60005260206000f3")
CREATION = bytes.fromhex("600a600c600039600a6000f3") + RUNTIME


def created(nonce: int) -> bytes:
    return keccak256(rlp.encode([rlp.encode(SENDER), rlp.encode(nonce)]))[12:]


class Truth(NamedTuple):
    """The expected values at one index."""

    number: int
    place: int  # the index of its flashblock
    hash: bytes
    sender: int  # balance
    nonce: int
    paid: int
    counted: int  # slot 0 of the counter
    code: bytes  # of the contract created by transaction 4


class ChainWithExpectations:
    """Extends a chain, and records the expected values."""

    def __init__(self, chain: PreconfirmingChain) -> None:
        self.chain = chain
        self.truths: list[Truth] = []
        self.paid = self.counted = 0
        self.code = b""

    def begin(self) -> None:
        self._note(self.chain.begin().diff.block_hash)

    def extend(self, *, pays: int = 0, counts: int = 0, creates: bool = False) -> None:
        chain = self.chain
        transactions = [chain.pay(PAID, 1) for _ in range(pays)]
        if counts:
            transactions.append(chain.pay(COUNTER, counts))
        if creates:
            transactions.append(chain.pay(None, 0, CREATION))
            self.code = RUNTIME
        self.paid += pays
        self.counted += counts
        self._note(chain.extend(transactions).diff.block_hash)

    def _note(self, block_hash: bytes) -> None:
        block = self.chain.block
        account = block.account(SENDER)
        assert account is not None
        self.truths.append(
            Truth(
                block.number,
                block.index - 1,
                block_hash,
                account.balance,
                self.chain.nonce,
                self.paid,
                self.counted,
                self.code,
            )
        )

    def check(self, ledger: Ledger) -> None:
        """Check every pin so far, by position and by hash."""
        view = ledger.view()
        for truth in self.truths:
            names: list[BlockId] = [ByIndex(truth.number, truth.place), ByHash(truth.hash)]
            for name in names:
                block = view.resolve(name)
                assert (block.number, block.hash) == (truth.number, truth.hash)
                assert read(view, name) == truth[3:]
        view.close()


def read(view: LedgerView, name: BlockId) -> tuple[object, ...]:
    state = view.state(view.resolve(name))
    return (
        state.balance(SENDER),
        state.nonce(SENDER),
        state.balance(PAID),
        state.storage(COUNTER, 0),
        state.code(created(3)),
    )


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    found = PreconfirmingChain(tmp_path / "store")
    yield found
    found.close()


@pytest.fixture
def ledger(chain: PreconfirmingChain) -> Ledger:
    return Ledger(chain.store, clock=chain.clock)


def follow_up(chain: PreconfirmingChain) -> None:
    while chain.writer.follow_up():
        pass


@pytest.mark.parametrize("between", [lambda _: None, follow_up], ids=["not folded", "folded"])
def test_state_at_each_pin_is_that_of_its_index_while_the_chain_goes_on(
    chain: PreconfirmingChain, ledger: Ledger, between: Callable[[PreconfirmingChain], None]
) -> None:
    teller = ChainWithExpectations(chain)
    steps: list[Callable[[], None]] = [
        teller.begin,
        lambda: teller.extend(pays=2),
        teller.extend,
        lambda: teller.extend(counts=5, creates=True),
        teller.begin,
        lambda: teller.extend(pays=1, counts=7),
        teller.begin,
        lambda: teller.extend(pays=3),
        teller.begin,
    ]
    for step in steps:
        step()
        between(chain)
        teller.check(ledger)
    assert len({truth.hash for truth in teller.truths}) == len(steps) - 1, "one index is empty"
    assert teller.truths[-1].code == RUNTIME
    view = ledger.view()
    for number, last in ((1, 3), (2, 5), (3, 7)):
        assert read(view, number) == teller.truths[last][3:], "the sealed block"
    assert read(view, "pending") == teller.truths[-1][3:]
    assert read(view, "latest") == teller.truths[7][3:]
    view.close()


def test_empty_index_has_the_hash_of_the_one_before_and_its_own_place(
    chain: PreconfirmingChain, ledger: Ledger
) -> None:
    chain.begin()
    first = chain.extend([chain.pay()])
    second = chain.extend()
    assert first.diff.block_hash == second.diff.block_hash
    view = ledger.view()
    by_hash, by_place = view.resolve(ByHash(first.diff.block_hash)), view.resolve(ByIndex(1, 2))
    assert isinstance(by_hash, PreconfirmedBlock)
    assert isinstance(by_place, PreconfirmedBlock)
    assert (by_hash.index, by_place.index) == (1, 2)
    assert by_hash.header == by_place.header
    view.close()


def test_pending_is_the_last_index_and_a_number_is_a_sealed_block(
    chain: PreconfirmingChain, ledger: Ledger
) -> None:
    view = ledger.view()
    assert view.pending is None
    assert view.resolve("pending") is view.latest
    view.close()
    chain.begin()
    flashblock = chain.extend([chain.pay()])
    view = ledger.view()
    pending = view.resolve("pending")
    assert isinstance(pending, PreconfirmedBlock)
    assert pending is view.pending
    assert (pending.number, pending.index) == (1, 1)
    assert pending.hash == flashblock.diff.block_hash
    assert view.latest.number == 0
    with pytest.raises(UnknownBlock):
        view.resolve(1)
    view.close()


def unreachable(ledger: Ledger, name: BlockId, kind: type[NotHere]) -> None:
    view = ledger.view()
    with pytest.raises(kind):
        view.resolve(name)
    view.close()


def test_pending_that_latest_has_overtaken_is_none(
    chain: PreconfirmingChain, ledger: Ledger
) -> None:
    chain.begin()
    builder = CommitBuilder(chain.store)
    sealed = chain.writer.header_if_sealed(chain.block)
    builder.seal(chain.block.partials, sealed, 0, None)
    assert builder.commit().pending == chain.block.partials[0], "it has not moved"
    view = ledger.view()
    assert view.pending is None
    assert view.resolve("pending") is view.latest
    assert view.latest.number == 1
    view.close()


def test_what_was_never_there_is_not_found(chain: PreconfirmingChain, ledger: Ledger) -> None:
    chain.begin()
    for place in (ByIndex(1, 1), ByIndex(2, 0), ByIndex(0, 0), ByIndex(2**64, 2**64)):
        unreachable(ledger, place, UnknownPartial)
    unreachable(ledger, ByHash(b"\x12" * 32), UnknownBlockHash)


def test_dropped_branch_cannot_be_reached_by_hash_or_place(
    chain: PreconfirmingChain, ledger: Ledger
) -> None:
    hashes = [chain.begin().diff.block_hash, chain.extend([chain.pay()]).diff.block_hash]
    batch = chain.store.batch()
    batch.drop(list(chain.block.partials), "the job was restarted")
    chain.store.commit(batch)
    for index, block_hash in enumerate(hashes):
        unreachable(ledger, ByHash(block_hash), DroppedPartial)
        unreachable(ledger, ByIndex(1, index), DroppedPartial)
    view = ledger.view()
    assert view.pending is None
    view.close()
    batch = chain.store.batch()
    batch.revive(list(chain.block.partials))
    chain.store.commit(batch)
    view = ledger.view()
    assert view.resolve(ByHash(hashes[1])).hash == hashes[1]
    view.close()


@pytest.mark.parametrize("drops", [True, False])
def test_tail_that_was_not_sealed_is_gone_and_its_prefix_stays(
    chain: PreconfirmingChain, ledger: Ledger, drops: bool
) -> None:
    """Also if the store was not asked to drop it: the content of the sealed block decides."""
    chain.begin()
    chain.extend([chain.pay()])
    sealed = chain.writer.header_if_sealed(chain.block)
    chain.extend([chain.pay()])
    builder = CommitBuilder(chain.store)
    builder.seal(chain.block.partials[:2], sealed, 0, None)
    builder.batch.pending(None)
    if drops:
        builder.batch.drop([chain.block.partials[2]], "it was not sealed")
    builder.commit()
    unreachable(ledger, ByIndex(1, 2), DroppedPartial)
    view = ledger.view()
    assert view.latest.hash == sealed.hash
    for index in (0, 1):
        assert view.state(view.resolve(ByIndex(1, index))).balance(PAID) == index
    view.close()


def test_hash_that_a_sealed_block_and_a_partial_share_means_the_sealed_one(
    chain: PreconfirmingChain, ledger: Ledger
) -> None:
    """This happens if a sequencer computes state roots for partial blocks."""
    chain.begin()
    assert chain.block.header is not None
    shared = chain.block.header
    view = ledger.view()
    assert isinstance(view.resolve(ByHash(shared.hash)), PreconfirmedBlock)
    builder = CommitBuilder(chain.store)
    builder.seal(chain.block.partials, shared, 0, None)
    builder.batch.pending(None)
    builder.commit()
    assert isinstance(view.resolve(ByHash(shared.hash)), PreconfirmedBlock), "the older view"
    view.close()
    view = ledger.view()
    assert isinstance(view.resolve(ByHash(shared.hash)), SealedBlock)
    assert isinstance(view.resolve(ByHash(shared.hash, require_canonical=True)), SealedBlock)
    assert isinstance(view.resolve(ByIndex(1, 0)), PreconfirmedBlock)
    view.close()


def test_partial_is_not_canonical_and_its_sealed_block_is(
    chain: PreconfirmingChain, ledger: Ledger
) -> None:
    partial = chain.begin().diff.block_hash
    unreachable(ledger, ByHash(partial, require_canonical=True), NotCanonical)
    chain.begin()
    unreachable(ledger, ByHash(partial, require_canonical=True), NotCanonical)
    view = ledger.view()
    sealed = view.latest.hash
    assert view.resolve(ByHash(sealed, require_canonical=True)) is view.latest
    assert view.resolve(ByHash(partial)).number == 1
    view.close()


def test_pruned_partials_are_gone_and_the_body_of_their_block_is_not(tmp_path: Path) -> None:
    chain = PreconfirmingChain(tmp_path / "store", keep_partials=2)
    ledger = Ledger(chain.store, clock=chain.clock)
    partial = chain.begin().diff.block_hash
    chain.extend([chain.pay()])
    for _ in range(6):
        chain.begin()
        follow_up(chain)
    unreachable(ledger, ByHash(partial), UnknownBlockHash)
    unreachable(ledger, ByIndex(1, 1), UnknownPartial)
    view = ledger.view()
    block = view.resolve(1)
    assert view.resolve(ByHash(block.hash)) is block
    assert [len(portion.raws) for portion in read_stored(view, block).portions()] == [1, 1]
    view.close()
    chain.close()


def test_block_that_took_the_place_of_a_rewound_one_has_its_own_body(
    chain: PreconfirmingChain, ledger: Ledger, tmp_path: Path
) -> None:
    """The row with the partial blocks of the replaced block still exists."""
    chain.begin()
    chain.extend([chain.pay()])
    chain.begin()
    chain.writer.close()
    batch = chain.store.batch()
    batch.rewind(0)
    chain.store.commit(batch)
    other = ChainBuilder(tmp_path / "other", chain.genesis)
    block = other.add()
    canonical = Chain(chain.store, other.profile)
    canonical.add(block)
    canonical.commit()
    canonical.close()
    view = ledger.view()
    assert view.latest.hash == block.hash
    assert view.resolve(ByHash(block.hash)) is view.latest
    assert [portion.raws for portion in read_stored(view, view.latest).portions()] == [[]]
    view.close()
    other.store.close()


def test_pending_may_stand_on_a_block_that_is_not_sealed_yet(
    chain: PreconfirmingChain, ledger: Ledger
) -> None:
    """This happens if a feed continues before the sealed form of its last block is known."""
    chain.begin()
    chain.extend([chain.pay(value=5)])
    sealed = chain.writer.header_if_sealed(chain.block)
    header = chain.block.header
    assert header is not None
    header = header.replace(number=2, parent_hash=sealed.hash, timestamp=header.timestamp + 2)
    batch = chain.store.batch()
    with chain.store.view() as below:
        overlay = below.state_of_partial(chain.block.partials[-1]).overlay()
        overlay.credit(PAID, 100)
        changes = overlay.take(batch.draw())
    stacked = batch.extend(
        2, 0, header.hash, changes, parent=chain.block.partials[-1], parent_hash=sealed.hash
    )
    row = PartialRow(b"12345678", 0, 0, 0, (), header)
    batch.put(partial_rows.partial_key(2, stacked), row.encode())
    batch.pending(stacked)
    chain.store.commit(batch)
    for expected_latest in (0, 1):
        view = ledger.view()
        assert view.pending is not None
        assert (view.latest.number, view.pending.number) == (expected_latest, 2)
        assert view.state(view.pending).balance(PAID) == 105
        assert view.state(view.pending).block_hash(1) == sealed.hash
        view.close()
        if not expected_latest:
            builder = CommitBuilder(chain.store)
            builder.seal(chain.block.partials, sealed, 0, None)
            builder.commit()
