"""Templates, compared with a plain model of the positions of values in mappings."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import keccak256
from foreblock.ledger.following import call_templates
from foreblock.ledger.following.call_templates import (
    CallTemplates,
    CallWords,
    Key,
    Kind,
    KnownCall,
    SlotRule,
)

CODE, TOKEN, ROUTER = b"\xc0" * 32, b"\x70" * 20, b"\x90" * 20
SELECTOR = bytes.fromhex("a9059cbb")


def word(value: int | bytes) -> bytes:
    return value.to_bytes(32) if isinstance(value, int) else value.rjust(32, b"\0")


class Mapping(NamedTuple):
    """A mapping of Solidity or Vyper: its slot, and its keys in call data."""

    base: int
    keys: tuple[Callable[[KnownCall], bytes], ...]
    behind: int = 0
    is_vyper: bool = False

    def slot(self, call: KnownCall) -> tuple[int, dict[bytes, bytes]]:
        """Return the slot of a call's value, and all hashed words."""
        place, hashed = word(self.base), {}
        for key in self.keys:
            pair = (place + key(call)) if self.is_vyper else (key(call) + place)
            place = keccak256(pair)
            hashed[place] = pair
        return int.from_bytes(place) + self.behind, hashed


def sender(call: KnownCall) -> bytes:
    return word(call.sender)


def argument(at: int) -> Callable[[KnownCall], bytes]:
    return lambda call: call.data[4 + 32 * at : 36 + 32 * at]


def call(who: bytes, *arguments: int | bytes, to: bytes = TOKEN) -> KnownCall:
    return KnownCall(to, CODE, who, SELECTOR + b"".join(map(word, arguments)))


def always(_: Key) -> bool:
    return True


people = st.binary(min_size=20, max_size=20).filter(lambda each: each[0] and each[1])
keys = st.lists(st.sampled_from([sender, argument(0), argument(1)]), min_size=1, max_size=2)
mappings = st.builds(
    Mapping,
    st.one_of(st.integers(0, 20), st.integers(1 << 200, (1 << 256) - 1)),
    keys.map(tuple),
    st.integers(0, 5),
    st.booleans(),
)


@given(mappings, st.lists(people, min_size=6, max_size=6, unique=True), st.booleans())
def test_another_user_is_predicted_to_read_his_own_slots(
    mapping: Mapping, who: list[bytes], elsewhere: bool
) -> None:
    """In the called contract, or in one named by its data."""
    owner, to = (who[4], ROUTER) if elsewhere else (TOKEN, TOKEN)
    more = (owner,) if elsewhere else ()
    first, second = call(who[0], who[1], 7_000_000, *more, to=to), None
    other = who[5] if elsewhere else TOKEN
    second = call(who[2], who[3], 8_000_000, *((other,) if elsewhere else ()), to=to)
    templates = CallTemplates()
    slot, hashed = mapping.slot(first)
    templates.learn([first], {owner: [slot]}, hashed)
    assert list(templates.predict(second, always)) == [(other, mapping.slot(second)[0])]
    assert list(templates.predict(second, lambda _: False)) == [], "it is known"
    another = second._replace(code=b"\xdd" * 32)
    assert list(templates.predict(another, always)) == [], "another code"
    short = second._replace(data=second.data[:4])
    assert all(key[0] == other for key in templates.predict(short, always))


def test_small_numbers_are_keys_where_keys_stand_and_places_elsewhere() -> None:
    owned = Mapping(2, (argument(0),))
    first, second = call(b"\xaa" * 20, 2), call(b"\xaa" * 20, 9)
    templates = CallTemplates()
    slot, hashed = owned.slot(first)
    templates.learn([first], {TOKEN: [slot]}, hashed)
    assert list(templates.predict(second, always)) == [(TOKEN, owned.slot(second)[0])]


def test_what_everybody_reads_is_no_template() -> None:
    fixed = Mapping(1, (lambda _: word(b"\x99" * 20),))
    templates = CallTemplates()
    slot, hashed = fixed.slot(call(b"\xaa" * 20))
    templates.learn([call(b"\xaa" * 20)], {TOKEN: [slot, slot + 64, 5]}, hashed)
    assert len(templates) == 0


def test_of_several_calls_those_that_name_the_account_are_meant() -> None:
    """One sender, two calls in a message: the missing slot is not attributed to a call."""
    balances, who = Mapping(0, (sender,)), b"\xaa" * 20
    transfer, other = call(who), call(who, to=ROUTER)._replace(code=b"\xdd" * 32)
    slot, hashed = balances.slot(transfer)
    templates = CallTemplates()
    templates.learn([other, transfer], {TOKEN: [slot]}, hashed)
    assert (len(templates.rules(transfer.kind)), templates.rules(other.kind)) == (1, ())
    templates.learn([other], {TOKEN: [slot]}, hashed)
    assert len(templates.rules(other.kind)) == 1, "it was alone"


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(0, 3),
            st.sampled_from([0, 1, 7, *range(4)]),
            st.booleans(),
        ),
        max_size=8,
    ),
    st.lists(st.tuples(mappings, st.integers(0, 7)), max_size=6),
)
def test_calls_are_found_by_their_words_as_if_each_were_asked(
    made: list[tuple[int, int, int, bool]], read: list[tuple[Mapping, int]]
) -> None:
    """Few accounts, small and large arguments, and similar calls of several kinds."""
    who = [bytes([0xA0 + at]) * 20 for at in range(4)]
    calls = [
        call(who[sent], who[named], small, to=who[small % 4] if is_user else TOKEN)
        for sent, named, small, is_user in made
    ]
    missed: dict[bytes, list[int]] = {TOKEN: [], who[1]: []}
    hashed: dict[bytes, bytes] = {}
    for mapping, at in read if calls else ():
        slot, more = mapping.slot(calls[at % len(calls)])
        hashed |= more
        missed[calls[at % len(calls)].target if at % 2 else TOKEN] = [slot]
    quick, plain = CallTemplates(), CallTemplates()
    quick.learn(calls, missed, hashed)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(CallWords, "having", lambda self, _words: self._calls)
        plain.learn(calls, missed, hashed)
    assert quick.take_changes() == plain.take_changes()


def test_a_call_is_not_asked_about_the_slots_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [call((1 + at).to_bytes(2) * 10, at % 3) for at in range(400)]
    found = [Mapping(0, (sender,)).slot(each) for each in calls]
    hashed = {place: pair for _, more in found for place, pair in more.items()}
    asked: list[KnownCall] = []

    def asked_about(each: KnownCall, *_: object) -> None:
        asked.append(each)

    monkeypatch.setattr(call_templates, "rule_of", asked_about)
    CallTemplates().learn(calls, {TOKEN: [slot for slot, _ in found]}, hashed)
    assert sorted(asked) == sorted(calls)


def used(templates: CallTemplates, times: int, *, reads: bool) -> int:
    """Let new users call one after the other; return the number of predicted ones."""
    balances, predicted = Mapping(0, (sender,)), 0
    for at in range(times):
        new = call(word(0x5000_0000_0000_0000_0000_0000 + at)[-20:])
        slot, hashed = balances.slot(new)
        found = list(templates.predict(new, always))
        predicted += found == [(TOKEN, slot)]
        if not found and reads:
            templates.learn([new], {TOKEN: [slot]}, hashed)
    return predicted


def test_what_does_not_pay_is_forgotten_soon() -> None:
    templates, first = CallTemplates(), call(b"\xaa" * 20)
    slot, hashed = Mapping(0, (sender,)).slot(first)
    templates.learn([first], {TOKEN: [slot]}, hashed)
    assert len(templates) == 1
    templates.take_changes()
    limit = call_templates.HELD_FIRST * (call_templates.MOST_STRIKES + 1)
    assert used(templates, 1000, reads=False) == limit - call_templates.MOST_STRIKES - 1
    assert len(templates) == 0
    assert templates.take_changes() == ({}, [first.kind])


def test_what_pays_stays_and_is_tried_less_and_less() -> None:
    templates, first = CallTemplates(), call(b"\xaa" * 20)
    slot, hashed = Mapping(0, (sender,)).slot(first)
    templates.learn([first], {TOKEN: [slot]}, hashed)
    templates.take_changes()
    assert used(templates, 5000, reads=True) >= 4980
    assert templates.take_changes() == ({}, []), "nothing has changed"


def test_what_is_kept_is_known_again_and_all_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_templates, "MOST_RULES", 2)
    templates = CallTemplates(most_kinds=3)
    kept: dict[Kind, tuple[SlotRule, ...]] = {}
    for at in range(5):
        new = call(b"\xaa" * 20)._replace(code=word(at))
        for base in range(3):
            slot, hashed = Mapping(base, (sender,)).slot(new)
            templates.learn([new], {TOKEN: [slot]}, hashed)
        put, gone = templates.take_changes()
        kept |= put
        for kind in gone:
            kept.pop(kind, None)
    assert sorted(kept) == [(word(at), SELECTOR) for at in (2, 3, 4)]
    assert all(len(rules) == 2 for rules in kept.values())
    again = CallTemplates()
    again.take(kept)
    assert again.take_changes() == ({}, [])
    new = call(b"\xbb" * 20)._replace(code=word(4))
    assert list(again.predict(new, always)) == list(templates.predict(new, always)) != []
