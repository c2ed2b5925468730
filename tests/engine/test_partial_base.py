"""A store with a part of its base gives the same results as a complete one.

Two stores run the same blocks: one has the whole state, the other began at an anchor without any
state. The first store proves whatever a run on the other lacks; then the run is repeated. Programs
call each other, read slots that depend on earlier reads, and destroy and recreate contracts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import methodcaller
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreblock._engine import (
    Account,
    Allowance,
    Body,
    Changes,
    Env,
    FetchedState,
    Message,
    MissingKeys,
    Overlay,
    State,
    Store,
    Tracer,
    Transaction,
    create_access_list,
    trace_call,
    unsigned_transaction,
)
from foreblock.errors import BadProof, IncompleteState, InvalidTransaction, StateMissing
from support.executing import Executed, execute
from support.payloads.bytecode import code, loop
from support.payloads.small_store import append, env, word

RULES = "ethereum:Shanghai"  # contracts can still be destroyed
GAS = 400_000
SENDERS = [bytes([0xE0 + each]) * 20 for each in range(2)]
CONTRACTS = [bytes([0xC0 + each]) * 20 for each in range(5)]
NOBODY = b"\x99" * 20
PLACES = [*CONTRACTS, SENDERS[0], NOBODY]
CHILD = bytes.fromhex(code("SELFBALANCE", 1, "SSTORE", "CALLER", "SELFDESTRUCT")[2:])
KEYS = st.integers(0, 3)
MOST_ROUNDS = 40

T = TypeVar("T")
Step = tuple[str | int | bytes, ...]
Call = tuple[int, int, int]  # sender, position, value


def creating() -> Step:
    """Create a contract at an address that depends only on its code, or fail to."""
    length = len(CHILD)
    # The child is returned from the end of a word: PUSH, MSTORE, RETURN.
    init = bytes.fromhex(code(CHILD, 0, "MSTORE", length, 32 - length, "RETURN")[2:])
    return (init, 0, "MSTORE", 0, len(init), 32 - len(init), 0, "CREATE2", 3, "SSTORE")


def steps() -> st.SearchStrategy[Step]:
    places = st.sampled_from(PLACES)
    call = ("POP",)
    return st.one_of(
        st.tuples(KEYS, KEYS).map(lambda k: (1, k[0], "SLOAD", "ADD", k[1], "SSTORE")),
        KEYS.map(lambda k: (0, k, "SSTORE")),
        KEYS.map(lambda k: (7, k, "SLOAD", "SSTORE")),
        st.tuples(places, KEYS).map(lambda t: (t[0], "BALANCE", t[1], "SSTORE")),
        st.tuples(places, KEYS).map(lambda t: (t[0], "EXTCODESIZE", t[1], "SSTORE")),
        st.tuples(st.integers(5, 9), KEYS).map(lambda t: (t[0], "BLOCKHASH", t[1], "SSTORE")),
        st.tuples(places, st.integers(0, 2)).map(
            lambda t: (0, 0, 0, 0, t[1], t[0], 50_000, "CALL", *call)
        ),
        # An account named by a slot.
        KEYS.map(lambda k: (0, 0, 0, 0, 1, k, "SLOAD", 50_000, "CALL", *call)),
        st.just(creating()),
        KEYS.map(lambda k: (k, "SLOAD", "SELFDESTRUCT")),
    )


def programs() -> st.SearchStrategy[bytes]:
    whole = st.lists(steps(), max_size=5)
    return whole.map(lambda all_: bytes.fromhex(code(*(op for step in all_ for op in step))[2:]))


Slots = dict[int, int]
values = st.one_of(st.integers(0, 3), st.sampled_from(PLACES).map(int.from_bytes))
storages = st.dictionaries(KEYS, values, max_size=4)
worlds = st.lists(st.tuples(programs(), storages, st.integers(0, 9)), min_size=5, max_size=5)
calls = st.tuples(st.integers(0, 1), st.integers(0, len(PLACES) - 1), st.integers(0, 3))
blocks = st.lists(st.lists(calls, max_size=4), min_size=1, max_size=5)


class Pair:
    """The complete store and the partial one."""

    def __init__(self, folder: Path, world: list[tuple[bytes, Slots, int]]) -> None:
        self.whole = Store(str(folder / "whole"), write=True, sync=False)
        self.part = Store(
            str(folder / "part"), write=True, sync=False, keep_states=3, keep_partials=1
        )
        for _ in range(9):
            append(self.whole)
        append(self.whole, lambda overlay: _fill(overlay, world))
        self.learned = FetchedState(1)
        self.part.set_fallback_state(self.learned)
        with self.whole.view() as view:
            root = view.state(9).trie().root()
        batch = self.part.batch()
        batch.begin_at(9, word(9), root, 1)
        self.part.commit(batch)
        self.rounds = 0

    def close(self) -> None:
        self.whole.close()
        self.part.close()

    def prove(self, learned: FetchedState, misses: MissingKeys) -> None:
        """Prove keys at the latest block, as an upstream does; the proofs are valid for the anchor
        too.
        """
        assert misses
        with self.whole.view() as view:
            assert view.heads.latest is not None
            state = view.state(view.heads.latest[0])
            root = state.trie().root()
            for address in {*misses.accounts, *misses.slots}:
                slots = list(misses.slots.get(address, ()))
                proof = state.prove(address, slots)
                nodes = [proof.slot(place)[1] for place in range(len(slots))]
                learned.prove(
                    root, address, proof.account_nodes, list(zip(slots, nodes, strict=True))
                )
            for code_hash, address in misses.codes.items():
                assert address, "a run knows whose code it wants"
                assert learned.put_code(state.code(address)) == code_hash
            for number in misses.blocks:
                assert number < 9
                learned.put_block(number, state.block_hash(number))

    def again(self, run: Callable[[State], T], learned: FetchedState | None = None) -> T:
        """Repeat a run on the partial store until nothing is missing; return its outcome."""
        learned = learned or self.learned
        self.part.set_fallback_state(learned)
        for _ in range(MOST_ROUNDS):
            with self.part.view() as view:
                assert view.heads.latest is not None
                state = view.state(view.heads.latest[0])
                try:
                    return run(state)
                except StateMissing as missing:
                    misses = missing.misses
            self.rounds += 1
            self.prove(learned, misses)
        raise AssertionError("it never has enough")

    def block(self, block: list[Call]) -> None:
        """Execute a block on both stores and compare."""
        with self.whole.view() as view:
            assert view.heads.latest is not None
            number = view.heads.latest[0] + 1
            here = env(RULES, number=number)
            batch = self.whole.batch()
            made = _execute(view.state(number - 1), here, block)
            told, changes = made(batch.draw())
        transactions = told[0]
        # Collected over all transactions of a call, which changes nothing if values are missing.
        other = self.part.batch()
        number_drawn = other.draw()

        def run(state: State) -> tuple[object, Changes]:
            overlay = state.overlay()
            return execute(overlay, here, transactions), overlay.take(number_drawn)

        results, mine = self.again(run)
        assert results == told[1]
        assert _plain(mine) == _plain(changes)
        other.learn(self.learned)
        other.append(number, word(number), mine)
        self.part.commit(other)
        batch.append(number, word(number), changes)
        self.whole.commit(batch)
        self.whole.trie()

    def compare(self) -> None:
        """Compare everything that is kept, with a cache that is cleared afterwards."""
        with self.whole.view() as whole, self.part.view() as part:
            assert part.heads.latest == whole.heads.latest
        learned = FetchedState(1)
        with self.whole.view() as whole:
            assert whole.heads.latest is not None
            expected = whole.state(whole.heads.latest[0])
            everybody = [address for address, _ in expected.accounts(None, 1000)]
            for address in {*everybody, *PLACES, b"\x01" * 20}:
                account = self.again(methodcaller("account", address), learned)
                assert _known(account) == _known(expected.account(address))
                for slot in range(8):
                    found = self.again(methodcaller("storage", address, slot), learned)
                    assert found == expected.storage(address, slot)
        self.part.set_fallback_state(self.learned)


def _known(account: Account | None) -> tuple[int, int, bytes] | None:
    """An account without its generation, which is specific to each store."""
    return account and (account.nonce, account.balance, account.code_hash)


def _plain(changes: Changes) -> dict[bytes, object]:
    return {
        address: (_known(before), _known(after), slots)
        for address, before, after, slots in changes.accounts
    }


def _fill(overlay: Overlay, world: list[tuple[bytes, Slots, int]]) -> None:
    for sender in SENDERS:
        overlay.set(sender, balance=10**18)
    for address, (program, slots, balance) in zip(CONTRACTS, world, strict=True):
        overlay.set(address, code=program, state=slots, balance=balance, nonce=1)


def _execute(
    state: State, here: Env, block: list[Call]
) -> Callable[[int], tuple[tuple[list[Transaction], object], Changes]]:
    """Execute a block of the valid calls; return their outcomes."""
    overlay = state.overlay()
    transactions: list[Transaction] = []
    results: list[Executed] = []
    for sender, place, value in block:
        account = overlay.account(SENDERS[sender])
        message = Message(
            sender=SENDERS[sender], to=PLACES[place], value=value, gas=GAS,
            max_fee_per_gas=0, max_priority_fee_per_gas=0,
        )  # fmt: skip
        transaction = unsigned_transaction(message, 1, account.nonce if account else 0)
        try:
            used = results[-1].receipt.cumulative_gas_used if results else 0
            results += execute(overlay, here, [transaction], gas_used=used)
        except InvalidTransaction:  # a sender may have been destroyed
            continue
        transactions.append(transaction)
    return lambda number: ((transactions, results), overlay.take(number))


@contextmanager
def pair(folder: Path, world: list[tuple[bytes, Slots, int]]) -> Iterator[Pair]:
    made = Pair(folder, world)
    try:
        yield made
    finally:
        made.close()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(world=worlds, run=blocks, maintained=st.integers(0, 200))
def test_a_partial_store_executes_as_the_whole_one(
    tmp_path_factory: pytest.TempPathFactory,
    world: list[tuple[bytes, Slots, int]],
    run: list[list[Call]],
    maintained: int,
) -> None:
    with pair(tmp_path_factory.mktemp("pair"), world) as stores:
        for block in run:
            stores.block(block)
            if maintained:
                stores.part.maintain(maintained)
            stores.compare()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(world=worlds, run=st.lists(calls, min_size=1, max_size=4))
def test_calls_runs_and_simulations_are_those_of_the_whole_store(
    tmp_path_factory: pytest.TempPathFactory,
    world: list[tuple[bytes, Slots, int]],
    run: list[Call],
) -> None:
    with pair(tmp_path_factory.mktemp("pair"), world) as stores:
        here = env(RULES, number=10)
        messages = [Message(sender=SENDERS[s], to=PLACES[p], value=v, gas=GAS) for s, p, v in run]

        def called(state: State) -> list[object]:
            return [_outcome(state.call(here, message)) for message in messages]

        def kept(state: State) -> object:
            overlay = state.overlay(remember=True)
            overlay.set(NOBODY, balance=5)
            return [_outcome(overlay.run(here, message)) for message in messages]

        def simulated(state: State) -> object:
            overlay = state.overlay()
            overlay.set(CONTRACTS[1], balance=77)
            body = Body(overlay, here)
            used = [body.run(message, 2) for message in messages]
            return used, _plain(overlay.take(1_000))

        def traced(state: State) -> object:
            tracers = [Tracer("calls"), Tracer("prestate", diff=True), Tracer("structLogs")]
            overlays = [state.overlay() for _ in tracers]
            return [
                [trace_call(overlay, here, each, tracer, limit=1 << 20).take() for each in messages]
                for overlay, tracer in zip(overlays, tracers, strict=True)
            ]

        def listed(state: State) -> object:
            listed = [
                create_access_list(state.overlay(), here, each, [], limit=1 << 20)
                for each in messages
            ]
            return [(text, _outcome(outcome)) for text, outcome in listed]

        runs: list[Callable[[State], object]] = [called, kept, simulated, traced, listed]
        with stores.whole.view() as view:
            expected = [run(view.state(9)) for run in runs]
        for made, wanted in zip(runs, expected, strict=True):
            assert stores.again(made, FetchedState(1)) == wanted


def _outcome(outcome: object) -> object:
    fields = ("status", "halt", "gas_used", "output", "logs")
    return tuple(getattr(outcome, field) for field in fields)


@pytest.fixture
def simple(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Codes are unique to a test, because all stores of a process share analysed code."""
    own = b"\x00" + request.node.name.encode()
    calls_all = b"".join(
        bytes.fromhex(code(0, 0, 0, 0, 0, each, 50_000, "CALL", "POP")[2:])
        for each in CONTRACTS[1:]
    )
    reads = bytes.fromhex(code(3, "SLOAD", 4, "SLOAD", 1, "SSTORE")[2:])
    world: list[tuple[bytes, Slots, int]] = [(calls_all + own, {}, 0)]
    world += [(reads + own + bytes([each]), {3: 1}, 0) for each in range(4)]
    with pair(tmp_path, world) as stores:
        yield stores


def test_rounds_go_with_depth_and_not_with_the_number_of_keys(simple: Pair) -> None:
    message = Message(sender=SENDERS[0], to=CONTRACTS[0], gas=GAS)
    simple.again(lambda state: state.call(env(RULES, number=10), message))
    # The accounts at the ends; the first code; all accounts it calls; their codes; all slots.
    assert simple.rounds <= 5
    before = simple.rounds
    simple.again(lambda state: state.call(env(RULES, number=10), message))
    assert simple.rounds == before, "nothing is missing a second time"


def test_a_missing_code_stops_its_frame_and_the_rest_goes_on(simple: Pair) -> None:
    message = Message(sender=SENDERS[0], to=CONTRACTS[0], gas=GAS)
    with simple.part.view() as view:
        state = view.state(9)
        with pytest.raises(StateMissing) as missing:
            state.call(env(RULES, number=10), message)
        assert CONTRACTS[0] in missing.value.misses.accounts
        simple.prove(simple.learned, missing.value.misses)
        with pytest.raises(StateMissing) as missing:
            state.call(env(RULES, number=10), message)
        assert list(missing.value.misses.codes.values()) == [CONTRACTS[0]]
        simple.prove(simple.learned, missing.value.misses)
        with pytest.raises(StateMissing) as missing:
            state.call(env(RULES, number=10), message)
        assert missing.value.misses.accounts == CONTRACTS[1:]


def test_a_run_that_wants_too_much_ends(simple: Pair) -> None:
    overlay_code = loop("5a5450")  # the slot whose number is the remaining gas
    message = Message(sender=SENDERS[0], to=CONTRACTS[1], gas=100_000_000)
    with simple.part.view() as view:
        state = view.state(9)
        simple.prove(simple.learned, state.missing([SENDERS[0], CONTRACTS[1]]))
        overlay = state.overlay()
        overlay.set(CONTRACTS[1], code=overlay_code)
        with pytest.raises(StateMissing) as missing:
            overlay.call(env(RULES, number=10), message)
    assert 20_000 <= len(missing.value.misses) < 20_010


def test_overrides_of_unknown_accounts_are_collected(simple: Pair) -> None:
    with simple.part.view() as view:
        overlay = view.state(9).overlay()
        overlay.set(NOBODY, balance=1)
        overlay.set(CONTRACTS[3], state_diff={1: 2})
        with pytest.raises(StateMissing) as missing:
            overlay.call(
                env(RULES, number=10), Message(sender=SENDERS[0], to=CONTRACTS[1], gas=GAS)
            )
        wanted = {NOBODY, CONTRACTS[3], SENDERS[0], CONTRACTS[1]}
        assert wanted <= set(missing.value.misses.accounts)
        for read in (lambda: overlay.account(NOBODY), lambda: overlay.take(9)):
            with pytest.raises(StateMissing):
                read()


def test_misses_of_all_transactions_come_at_once_and_nothing_is_applied(simple: Pair) -> None:
    def transaction(sender: bytes, to: bytes, nonce: int) -> Transaction:
        message = Message(
            sender=sender, to=to, gas=GAS, max_fee_per_gas=0, max_priority_fee_per_gas=0
        )
        return unsigned_transaction(message, 1, nonce)

    transactions = [
        transaction(SENDERS[0], CONTRACTS[1], 0),
        transaction(SENDERS[0], CONTRACTS[2], 1),
        transaction(SENDERS[1], NOBODY, 0),
    ]
    here = env(RULES, number=10)
    with simple.part.view() as view:
        overlay = view.state(9).overlay()
        wanted = {*SENDERS, CONTRACTS[1], CONTRACTS[2], NOBODY}
        with pytest.raises(StateMissing) as missing:
            execute(overlay, here, transactions)
        assert wanted <= set(missing.value.misses.accounts)
        assert overlay.probe(here, transactions, Allowance()) == missing.value.misses
        for _ in range(MOST_ROUNDS):
            if not (misses := overlay.probe(here, transactions, Allowance())):
                break
            simple.prove(simple.learned, misses)
        assert len(execute(overlay, here, transactions)) == 3, "the same overlay continues"


def test_whole_states_are_refused_and_a_proof_of_another_key_too(simple: Pair) -> None:
    with simple.part.view() as view:
        state = view.state(9)
        with pytest.raises(IncompleteState):
            state.accounts(None, 5)
        with pytest.raises(StateMissing):
            state.prove(SENDERS[0], [])
        assert not view.heads.base.is_complete
        assert (view.heads.base.number, view.heads.base.epoch) == (9, 1)
        assert (view.heads.base.hash, view.heads.format) == (word(9), 2)
    with simple.whole.view() as view:
        state = view.state(9)
        root, proof = state.trie().root(), state.prove(SENDERS[0], [])
        assert view.heads.base.is_complete
        assert view.heads.format == 1
    for at, address in [(root, SENDERS[1]), (word(1), SENDERS[0])]:
        with pytest.raises(BadProof):
            simple.learned.prove(at, address, proof.account_nodes, [])
    account, values_ = simple.learned.prove(root, SENDERS[0], proof.account_nodes, [])
    assert _known(account) == _known(proof.account)
    assert values_ == []


def test_a_slot_that_follows_from_other_proofs_is_stored_once_it_is_read(simple: Pair) -> None:
    """The next block may change it; from then on no proof shows its value at the anchor."""
    empty, small = CONTRACTS[:2]  # no storage, and one slot
    with simple.whole.view() as view:
        state = view.state(9)
        root = state.trie().root()
        for address, slots in ((empty, []), (small, [3])):
            proof = state.prove(address, slots)
            nodes = [(each, proof.slot(at)[1]) for at, each in enumerate(slots)]
            simple.learned.prove(root, address, proof.account_nodes, nodes)
    simple.part.learn(simple.learned)
    with simple.part.view() as view:
        assert view.state(9).storage(empty, 77) == 0
        assert view.state(9).storage(small, 77) == 0, "the one leaf is another's"
    assert simple.part.learn(simple.learned) == 2
    simple.part.set_fallback_state(FetchedState(1))
    with simple.part.view() as view:
        state = view.state(9)
        assert not state.missing([empty], {empty: [77], small: [3, 77]}).slots
        assert state.missing([], {empty: [78], small: [79]}).slots == {empty: [78], small: [79]}
