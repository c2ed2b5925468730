"""Plans: every key once, nothing above a limit, and an honest endpoint serves all."""

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from foreblock._engine import MissingKeys
from foreblock.follow.fetch_result import ClaimedAccount, FetchResult
from foreblock.follow.requests import (
    BlockForm,
    GetBalance,
    GetCode,
    GetHeader,
    GetProof,
    GetStorageAt,
    GetStorageValues,
    GetTransactionCount,
    ReadByCall,
    StateRequest,
)
from foreblock.follow.responses import ResponseReader
from foreblock.follow.state_fetcher import by_history
from foreblock.follow.state_plan import (
    BEACON,
    FIRST_SLOTS,
    IMPLEMENTATION,
    RequestLimits,
    bodies,
    plan_state,
    with_first_slots,
)
from foreblock.ledger.rules.execution import HISTORY_STORAGE, HISTORY_WINDOW
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.types import keccak256
from foreblock.upstream.json_rpc import body_of, results
from support.upstreams.plain_state import AT, CODES, PlainState, balance, header, value, wants

limits = st.builds(
    RequestLimits,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(BlockForm),
    st.integers(1, 10),
    st.integers(1, 10),
    st.integers(1, 10),
    st.integers(1, 5),
    st.sampled_from([1500, 3000, 1_000_000]),
    st.sampled_from([40_000, 200_000, 8_000_000]),
)
A, B = b"\xaa" * 20, b"\xbb" * 20


def keys(asked: tuple[StateRequest, ...]) -> Counter[object]:
    """The number of requests for each key; an account with its first proof."""
    found: Counter[object] = Counter()
    proven = set()
    for each in asked:
        match each:
            case GetProof(address, slots):
                if address not in proven:
                    found[address] += 1
                proven.add(address)
                found.update((address, slot) for slot in slots)
            case GetStorageValues(slots) | ReadByCall(slots):
                found.update((address, slot) for address in slots for slot in slots[address])
            case GetStorageAt(address, slot):
                found[address, slot] += 1
            case GetBalance(address) | GetTransactionCount(address):
                found[type(each), address] += 1
            case GetCode(address):
                found["code", address] += 1
            case GetHeader(number, hash):
                found[number, hash] += 1
    return found


@given(wants, limits, st.booleans())
def test_every_key_is_asked_for_once_and_no_other_key(
    wanted: StateKeys, limits: RequestLimits, proven: bool
) -> None:
    plan = plan_state(wanted, limits, AT, proven=proven)
    asked = keys(plan.requests)
    assert set(asked.values()) <= {1}
    planned = wanted.without(plan.left)
    slots = {(address, slot) for address, some in planned.slots.items() for slot in some}
    assert {key for key in asked if isinstance(key, tuple) and isinstance(key[0], bytes)} == slots
    if not limits.proofs or (limits.tip_proofs and not proven):
        assert not any(isinstance(each, GetProof) for each in plan.requests)
        assert bool(plan.left.accounts) == (proven and bool(wanted.accounts))
    else:
        assert not plan.left.accounts
    if proven:
        others = (GetStorageValues, ReadByCall, GetStorageAt, GetBalance)
        assert not any(isinstance(each, others) for each in plan.requests)


@given(wants, limits, st.booleans())
def test_no_request_is_above_the_limits(
    wanted: StateKeys, limits: RequestLimits, proven: bool
) -> None:
    plan = plan_state(wanted, limits, AT, proven=proven)
    for each in plan.requests:
        match each:
            case GetProof(_, slots):
                assert len(slots) <= limits.proof_slots
            case ReadByCall(slots):
                assert sum(map(len, slots.values())) <= limits.call_slots
            case GetStorageValues(slots):
                assert sum(map(len, slots.values())) <= limits.values_slots
            case _:
                pass
    together = list(bodies(plan.requests, limits))
    assert tuple(each for some in together for each in some) == plan.requests
    for some in together:
        block = AT.parameter(limits.form)
        body = body_of([(each.method, each.params(block)) for each in some])
        assert len(some) <= limits.batch
        assert len(body) <= limits.body_bytes


def fetched_keys(
    wanted: StateKeys, limits: RequestLimits, state: PlainState, *, proven: bool
) -> FetchResult:
    """The keys that are read from an honest endpoint's responses, with JSON encoding both ways."""
    plan = plan_state(wanted, limits, AT, proven=proven)
    reading = ResponseReader()
    for some in bodies(plan.requests, limits):
        block = AT.parameter(limits.form)
        sent = json.loads(body_of([(each.method, each.params(block)) for each in some]))
        requests = sent if isinstance(sent, list) else [sent]
        answers = [
            {
                "jsonrpc": "2.0",
                "id": each["id"],
                "result": state.answer(each["method"], each["params"]),
            }
            for each in requests
        ]
        answer = json.dumps(answers[::-1] if isinstance(sent, list) else answers[0]).encode()
        read = results(200, answer, range(1, len(some) + 1))
        for number, asked in enumerate(some, start=1):
            result = read[number]
            assert isinstance(result, Raw)
            reading.take(asked, result)
    return reading.found


@given(wants, limits, st.booleans())
def test_an_honest_endpoint_settles_everything(
    wanted: StateKeys, limits: RequestLimits, proven: bool
) -> None:
    plan = plan_state(wanted, limits, AT, proven=proven)
    found = fetched_keys(wanted, limits, PlainState(), proven=proven)
    assert found.missing(wanted) == plan.left
    for address, account in found.accounts.items():
        root = account.storage_root
        code = keccak256(CODES.get(address, b""))
        assert account == ClaimedAccount(address[1], balance(address), code, root)
    for address, values in found.slots.items():
        assert values == {slot: value(address, slot) for slot in values}
    for number, block in found.headers.items():
        assert block.hash == header(number).hash
    assert all(keccak256(code) == name for name, code in found.codes.items())


def test_an_account_with_its_slots_is_one_request() -> None:
    wanted = StateKeys(frozenset({A}), {A: frozenset(range(100)), B: frozenset(range(3000))})
    trusted = plan_state(wanted, RequestLimits(), AT, proven=False)
    assert [type(each) for each in trusted.requests] == [GetProof, ReadByCall]
    proven = plan_state(wanted, RequestLimits(proof_slots=1000), AT, proven=True)
    assert [each.method for each in proven.requests] == ["eth_getProof"] * 1 + ["eth_getProof"] * 5


def test_a_number_is_checked_beside_what_is_asked_at_it() -> None:
    limits = RequestLimits(form=BlockForm.NUMBER)
    plan = plan_state(StateKeys(frozenset({A})), limits, AT, proven=False)
    assert plan.requests == (GetProof(A), GetHeader(AT.number, AT.hash))
    assert plan_state(StateKeys(blocks=frozenset({7})), limits, AT, proven=False).requests == (
        GetHeader(7),
    )


def test_a_code_without_an_account_is_left_over() -> None:
    wanted = StateKeys(codes={b"\x01" * 32: b"", b"\x02" * 32: A})
    plan = plan_state(wanted, RequestLimits(), AT, proven=True)
    assert plan.left == StateKeys(codes={b"\x01" * 32: b""})
    assert plan.requests == (GetCode(A, b"\x02" * 32),)


def test_first_slots_of_new_contracts_come_along() -> None:
    def slot(name: str) -> int:
        return int.from_bytes(keccak256(name.encode())) - 1

    assert slot("eip1967.proxy.implementation") == IMPLEMENTATION
    assert slot("eip1967.proxy.beacon") == BEACON
    wanted = StateKeys(frozenset({A, B}), codes_of=frozenset({A}))
    assert with_first_slots(wanted).slots == {A: FIRST_SLOTS}
    assert with_first_slots(wanted, frozenset({A})) is wanted
    assert with_first_slots(StateKeys(frozenset({A}))) == StateKeys(frozenset({A}))
    with_slot = StateKeys(frozenset({A}), {A: frozenset({99}), B: frozenset({1})})
    assert with_first_slots(with_slot).slots == {A: FIRST_SLOTS | {99}, B: frozenset({1})}


@given(wants, wants)
def test_both_wants_and_their_difference(some: StateKeys, other: StateKeys) -> None:
    both = some.also(other)
    assert both.without(other).without(some) == StateKeys()
    assert not some.without(both)
    assert both.also(some) == both
    assert len(both) <= len(some) + len(other)
    assert bool(some) == (len(some) > 0)


@given(wants, wants)
def test_a_part_of_what_was_found(some: StateKeys, other: StateKeys) -> None:
    """Each of several requests gets exactly its keys from a shared response."""
    found = fetched_keys(some.also(other), RequestLimits(), PlainState(), proven=True)
    part = found.part(some)
    assert part.missing(some) == found.missing(some)
    assert part.accounts.keys() <= some.accounts | some.slots.keys()
    assert {at: frozenset(values) for at, values in part.slots.items()} == dict(some.slots)
    assert part.headers.keys() == some.blocks
    assert part.proofs.keys() == some.accounts | some.slots.keys()


def test_what_the_engine_missed_is_wanted() -> None:
    codes = {b"\x01" * 32: b"", b"\x02" * 32: A}
    gone = b"\xdd" * 20  # its slots are only available at an old block
    wanted = StateKeys.of(MissingKeys([A], {A: [1, 2], B: [], gone: [3]}, codes, [7], {gone: 5}))
    assert wanted == StateKeys(
        frozenset({A}),
        {A: frozenset({1, 2})},
        {b"\x01" * 32: b"", b"\x02" * 32: A},
        frozenset(),
        frozenset({7}),
    )


def test_hashes_of_blocks_outside_the_window_are_asked_for_by_number() -> None:
    at = 20_000
    wanted = StateKeys(blocks=frozenset({at, at - 1, at - HISTORY_WINDOW, at - HISTORY_WINDOW - 1}))
    found = by_history(wanted, at)
    assert found.blocks == frozenset({at, at - HISTORY_WINDOW - 1})
    assert found.slots == {
        HISTORY_STORAGE: frozenset({(at - 1) % HISTORY_WINDOW, at % HISTORY_WINDOW})
    }
    nothing = StateKeys(blocks=frozenset({at}))
    assert by_history(nothing, at) is nothing
