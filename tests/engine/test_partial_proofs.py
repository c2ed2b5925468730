"""Proofs and simulated roots on a store with a part of its base equal those on a complete one.

Two stores grow by the same partial blocks. One has the whole state; the other began at an anchor
and knows the state that its blocks read, by proofs. Nodes of sealed blocks are computed behind its
head, at any time or never. It reports missing state, and proofs of the first store at the reported
block suffice, for sealed blocks and for the block in progress. Accounts are destroyed along with
unknown slots.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.test_partial_roots import FIRST, PEOPLE, Change, change, edit_of, nodes_of
from foreblock._engine import Changes, FetchedState, MissingKeys, Proof, State, Store, View
from foreblock.errors import IncompleteState, MissingNode, MissingTrieNodes, StateMissing
from support.payloads.small_store import append, changes, word

T = TypeVar("T")
SLOTS = range(16)
MOST_ROUNDS = 12

# Add a partial block, seal it, compute roots behind the head, maintain.
Action = tuple[str, list[Change]]
actions = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.lists(change, min_size=1, max_size=4)),
        st.tuples(st.sampled_from(["seal", "seal", "keep", "maintain"]), st.just([])),
    ),
    max_size=14,
)


class GrowingPair:
    """A store with the whole state, and one with a part of it."""

    def __init__(self, folder: Path, first: Sequence[Change]) -> None:
        self.full = Store(str(folder / "full"), write=True)
        append(self.full, edit_of(first))
        self.roots = [self.full.trie().root()]
        self.partial = Store(str(folder / "partial"), write=True)
        batch = self.partial.batch()
        batch.begin_at(0, word(0), self.roots[0], epoch=1)
        self.partial.commit(batch)
        self.learned = FetchedState(1)
        self.partial.set_fallback_state(self.learned)
        # the partial blocks of the block in progress, on both
        self.open: list[tuple[int, int]] = []
        self.kept = 0
        self.asked = 0  # number of proofs for trie paths

    def close(self) -> None:
        self.full.close()
        self.partial.close()

    # --- Growth ----------------------------------------------------------------------------

    def run(self, action: Action) -> None:
        match action[0]:
            case "grow":
                self.grow(action[1])
            case "seal" if self.open:
                self.seal()
            case "keep":
                self.keep()
            case "maintain":
                self.partial.maintain(1000)
            case _:
                pass  # there is nothing to seal

    def grow(self, block: Sequence[Change], *, learns: bool = True) -> None:
        if learns:
            self.learn(block)
        one = self._extend(self.full, block, self.open[-1][0] if self.open else None)
        other = self._extend(self.partial, block, self.open[-1][1] if self.open else None)
        self.open.append((one, other))

    def learn(self, block: Sequence[Change]) -> None:
        """Learn the state that a block changes, before the change; only the account if it is
        destroyed.
        """
        for who, _, values in block:
            self.learn_at(len(self.roots) - 1, PEOPLE[who], sorted(values))

    def learn_at(self, number: int, address: bytes, wanted: Sequence[int]) -> None:
        """Learn the state at the anchor from a proof at a block."""
        with self.partial.view() as view:
            same_life = view.state(number).is_same_life_as_anchor(address)
        proof = self.prove(number, address, wanted)
        ways = [(slot, proof.slot(at)[1]) for at, slot in enumerate(wanted)]
        self.learned.prove(
            self.roots[number], address, proof.account_nodes, ways, same_life=same_life
        )

    def _extend(self, store: Store, block: Sequence[Change], above: int | None) -> int:
        batch, number = store.batch(), len(self.roots)
        if store is self.partial:
            batch.learn(self.learned)
        changed = changes(store, batch, edit_of(block), partial=above)
        index, below = len(self.open), number - 1 if above is None else None
        block_hash = word(100 * number + index)
        grown = batch.extend(number, index, block_hash, changed, on_block=below, parent=above)
        batch.pending(grown)
        store.commit(batch)
        return grown

    def seal(self) -> None:
        for store, partial in zip((self.full, self.partial), self.open[-1], strict=True):
            batch = store.batch()
            batch.pending(None)
            batch.seal(partial, word(len(self.roots)))
            store.commit(batch)
        self.roots.append(self.full.trie().root())
        self.open.clear()

    # --- Requests of the partial store -----------------------------------------------------

    def prove(self, number: int, address: bytes, wanted: Sequence[int]) -> Proof:
        with self.full.view() as view:
            return view.state(number).prove(address, wanted)

    def helped(self, run: Callable[[State], T], of: Callable[[View], State]) -> T:
        """Return the outcome of a run on the partial store, once it has the missing state."""
        for _ in range(MOST_ROUNDS):
            with self.partial.view() as view:
                try:
                    return run(of(view))
                except StateMissing as missing:
                    why = missing
            assert why.misses, "something is named"
            if isinstance(why, MissingTrieNodes):
                self._bring_ways(why)
            else:
                self._bring_values(why.misses)
        raise AssertionError(f"endless requests: {why}")

    def _bring_ways(self, why: MissingTrieNodes) -> None:
        for address in why.misses.accounts:
            slots = sorted(why.misses.slots.get(address, ()))
            proof = self.prove(why.block, address, slots)
            self.learned.put_nodes(nodes_of(proof, len(slots)))
            self.asked += 1

    def _bring_values(self, misses: MissingKeys) -> None:
        """Learn at the latest block, as an upstream proves, or at the given one."""
        for address in {*misses.accounts, *misses.slots}:
            number = misses.destroyed_after.get(address, len(self.roots) - 1)
            self.learn_at(number, address, sorted(misses.slots.get(address, ())))

    def keep(self) -> None:
        """Compute the nodes of sealed blocks, as far as they are due."""
        while self.kept < len(self.roots) - 1:
            number = self.kept + 1
            with self.partial.view() as view:
                changed = view.changes(number)
            nodes = self._complete(number, changed)
            trie = self.partial.trie_behind(number - 1, self.roots[number - 1])
            trie.fill(nodes)
            trie.apply(changed)
            assert trie.root() == self.roots[number]
            written = trie.take()
            assert written is not None
            assert self.partial.keep_nodes(number, word(number), written)
            self.kept = number

    def _complete(self, number: int, changed: Changes) -> list[bytes]:
        nodes: list[bytes] = []
        for _ in range(MOST_ROUNDS):
            trie = self.partial.trie_behind(number - 1, self.roots[number - 1])
            trie.fill(nodes)
            needed = trie.needs(changed)
            if not needed:
                return nodes
            keys = needed.before or needed.preimages_for_paths()
            assert keys is not None, "so small a trie is not deep"
            for address, slots in keys.items():
                nodes += nodes_of(self.prove(number - 1, address, slots), len(slots))
        raise AssertionError("endless requests")

    # --- Comparisons -----------------------------------------------------------------------

    def states(self) -> Iterator[tuple[Callable[[View], State], Callable[[View], State], bytes]]:
        """States on both stores, with the root of the sealed block below."""
        with self.partial.view() as view:
            earliest = view.heads.earliest
        for number in range(earliest, len(self.roots)):
            of = _of_block(number)
            yield of, of, self.roots[number]
        for one, other in self.open:
            yield _of_partial(one), _of_partial(other), self.roots[-1]

    def judge(self) -> None:
        for of_full, of_partial, root in self.states():
            for address in PEOPLE[::3]:
                with self.full.view() as view:
                    true = of_full(view).prove(address, SLOTS)

                def prove(state: State, who: bytes = address, below: bytes = root) -> Proof:
                    return state.prove(who, SLOTS, root=below)

                found = self.helped(prove, of_partial)
                assert found.account_nodes == true.account_nodes
                assert found.storage_root == true.storage_root
                assert [found.slot(at) for at in SLOTS] == [true.slot(at) for at in SLOTS]
                assert _shown(found) == _shown(true)

    def judge_reads(self) -> None:
        for of_full, of_partial, _ in self.states():
            for address in PEOPLE[1::3]:
                with self.full.view() as view:
                    true = _read(of_full(view), address)

                def read(state: State, who: bytes = address) -> list[int]:
                    return _read(state, who)

                assert self.helped(read, of_partial) == true

    def judge_simulated(self, block: Sequence[Change]) -> None:
        self.learn(block)
        self.partial.learn(self.learned)
        for of_full, of_partial, root in self.states():
            with self.full.view() as view:
                true = _root_after(of_full(view), block, None)

            def run(state: State, below: bytes = root) -> bytes:
                return _root_after(state, block, below)

            assert self.helped(run, of_partial) == true

    def judge_recorded(self, block: Sequence[Change]) -> None:
        """Compare the recorded state of a run with that on the complete store."""
        for number in range(len(self.roots)):
            of = _of_block(number)
            with self.full.view() as view:
                true = _recorded(of(view), block, None)

            def run(state: State, below: bytes = self.roots[number]) -> list[list[bytes]]:
                return _recorded(state, block, below)

            assert self.helped(run, of) == true


def _of_block(number: int) -> Callable[[View], State]:
    return lambda view: view.state(number)


def _of_partial(number: int) -> Callable[[View], State]:
    return lambda view: view.state_of_partial(number)


def _shown(proof: Proof) -> tuple[int, int, bytes] | None:
    account = proof.account
    return None if account is None else (account.nonce, account.balance, account.code_hash)


def _read(state: State, who: bytes) -> list[int]:
    """Read the balance and all slots of an account."""
    misses = state.missing([who], {who: list(SLOTS)})
    if misses:
        raise StateMissing(misses)
    return [state.balance(who), *(state.storage(who, slot) for slot in SLOTS)]


def _recorded(state: State, block: Sequence[Change], root: bytes | None) -> list[list[bytes]]:
    """The nodes and keys required by changes, and the storage root of another account."""
    recording = state.record(root=root)
    overlay = recording.overlay()
    edit_of(block)(overlay)
    trie = recording.trie()
    trie.apply(overlay.take(10**9))
    trie.root()
    trie.storage_root(PEOPLE[5])
    nodes, _, keys, _ = recording.recorded()
    return [nodes, keys]


def _root_after(state: State, block: Sequence[Change], root: bytes | None) -> bytes:
    overlay = state.overlay()
    edit_of(block)(overlay)
    trie = state.trie(root=root)
    trie.apply(overlay.take(10**9))
    return trie.root()


@given(
    first=st.lists(change, min_size=1, max_size=12),
    done=actions,
    simulated=st.lists(change, min_size=1, max_size=4),
)
def test_proofs_and_simulated_roots_are_those_of_a_whole_store(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[Change],
    done: list[Action],
    simulated: list[Change],
) -> None:
    with closing(GrowingPair(tmp_path_factory.mktemp("pair"), first)) as pair:
        for action in done:
            pair.run(action)
        pair.judge()
        pair.judge_reads()
        pair.judge_simulated(simulated)
        pair.judge_recorded(simulated)


def test_slots_of_an_account_that_went_are_asked_for_before(tmp_path: Path) -> None:
    with closing(GrowingPair(tmp_path, [(0, 1, {3: 7, 4: 8}), *FIRST[1:]])) as pair:
        pair.grow([(1, 9, {})])
        pair.seal()
        pair.grow([(0, None, {})])
        with pair.partial.view() as view, pytest.raises(StateMissing) as missing:
            view.state(1).storage(PEOPLE[0], 3)
        assert missing.value.misses.destroyed_after == {}, "the latest block has it"
        pair.seal()
        with pair.partial.view() as view:
            for number in (0, 1):
                with pytest.raises(StateMissing) as missing:
                    view.state(number).storage(PEOPLE[0], 3)
                assert missing.value.misses.destroyed_after == {PEOPLE[0]: number}
            assert view.state(2).storage(PEOPLE[0], 3) == 0
        pair.learn_at(2, PEOPLE[0], [3])
        with pair.partial.view() as view, pytest.raises(StateMissing):
            view.state(1).storage(PEOPLE[0], 3)
        pair.learn_at(1, PEOPLE[0], [3])
        pair.partial.learn(pair.learned)
        with pair.partial.view() as view:
            assert [view.state(at).storage(PEOPLE[0], 3) for at in (0, 1, 2)] == [7, 7, 0]


def test_a_block_in_progress_asks_for_nothing_where_nodes_are_kept(tmp_path: Path) -> None:
    with closing(GrowingPair(tmp_path, FIRST)) as pair:
        for block in ([(0, 2, {3: 2})], [(4, 7, {1: 5, 2: 6})]):
            pair.grow(block)
            pair.seal()
        pair.keep()
        pair.partial.maintain(1000)
        pair.grow([(0, 5, {3: 9}), (4, 1, {1: 7})])
        with pair.full.view() as view:
            true = view.state_of_partial(pair.open[-1][0]).prove(PEOPLE[0], [3])
        with pair.partial.view() as view:
            assert view.heads.nodes == 2
            state = view.state_of_partial(pair.open[-1][1])
            assert state.sealed_block == 2
            found = state.prove(PEOPLE[0], [3], root=pair.roots[2])
        assert found.account_nodes == true.account_nodes
        assert found.slot(0) == true.slot(0)


def test_a_deletion_in_progress_is_proven_by_a_key_that_nobody_has(tmp_path: Path) -> None:
    with closing(GrowingPair(tmp_path, [(0, 1, {101: 1, 102: 1}), *FIRST[1:]])) as pair:
        pair.grow([(0, 1, {101: 0})])
        with pair.partial.view() as view, pytest.raises(MissingTrieNodes) as missing:
            view.state_of_partial(pair.open[-1][1]).prove(PEOPLE[0], [101], root=pair.roots[0])
        assert missing.value.block == 0
        (slot,) = missing.value.misses.slots[PEOPLE[0]]
        assert slot not in {101, 102}
        pair.judge()


def test_a_slot_of_an_account_without_storage_is_stored_as_it_was(tmp_path: Path) -> None:
    """Values implied by an empty storage are not kept, and a later proof would contradict them."""
    with closing(GrowingPair(tmp_path, [(0, 1, {}), *FIRST[1:]])) as pair:
        pair.learn([(0, 1, {})])
        with pair.partial.view() as view:
            assert view.state(0).storage(PEOPLE[0], 3) == 0, "as a run reads its changes"
        pair.grow([(0, 1, {3: 7})], learns=False)
        pair.seal()
        pair.partial.maintain(1000)
        late = FetchedState(1)
        pair.partial.set_fallback_state(late)
        for _ in range(2):
            with pair.partial.view() as view:
                assert [view.state(at).storage(PEOPLE[0], 3) for at in (0, 1)] == [0, 7]
            proof = pair.prove(1, PEOPLE[0], [3])
            late.prove(pair.roots[1], PEOPLE[0], proof.account_nodes, [(3, proof.slot(0)[1])])
            pair.partial.learn(late)


def test_without_its_root_nothing_is_made_up(tmp_path: Path) -> None:
    with closing(GrowingPair(tmp_path, FIRST)) as pair:
        for _ in range(50):  # more blocks than are replayed from the last nodes
            pair.grow([(0, 2, {3: 2})])
            pair.seal()
        pair.grow([(0, 3, {})])
        with pair.partial.view() as view, pytest.raises(IncompleteState):
            view.state_of_partial(pair.open[-1][1]).prove(PEOPLE[0], [3])


def test_nodes_of_a_block_that_is_gone_are_not_kept(tmp_path: Path) -> None:
    with closing(GrowingPair(tmp_path, FIRST)) as pair:
        pair.grow([(0, 2, {3: 2})])
        pair.seal()
        with pair.partial.view() as view:
            changed = view.changes(1)
        trie = pair.partial.trie_behind(0, pair.roots[0])
        trie.apply(changed)
        written = trie.take()
        assert written is not None
        assert not pair.partial.keep_nodes(1, word(77), written), "of another branch"
        batch = pair.partial.batch()
        batch.rewind(0)
        pair.partial.commit(batch)
        assert not pair.partial.keep_nodes(1, word(1), written)
        unknown = pair.partial.trie_behind(0, word(5))
        unknown.apply(changes(pair.partial, pair.partial.batch(), edit_of([(0, 3, {})])))
        with pytest.raises(MissingNode):
            unknown.root()
