"""Templates: how calls of one kind find the slots that they read, learned from runs.

A mapping of Solidity or Vyper stores a value at the hash of two words: a key, and the place of the
mapping, which may be such a hash itself. If the key is the caller, or is part of the data of the
call, another call of the same code and function reads the slot of its own caller and data. So these
slots can be fetched before a run reaches them. A template is a hint, and never a value.

Now and then a prediction is held back to test its template. If the run does not miss the slot,
twice, the template is forgotten.

Matching each missed slot of a block against each of its calls would take seconds. `CallWords`
searches the data of all calls as one text, in microseconds; it may find a call that has the word by
chance, and leaves out none that has it.

The writer stores templates now and then, without a commit. No response depends on these rows, and
they are valid at every anchor.

    rows             key                                       value
    template         M ‖ code hash (32) ‖ selector (4)         its rules, MessagePack
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from foreblock._engine import (
    Account,
    MissingKeys,
    Overlay,
    Store,
    Transaction,
    View,
    keccak256,
)
from foreblock.errors import StateMissing, StoreDamaged
from foreblock.ledger.following.missing_state import MissingState
from foreblock.lru_cache import LruCache

SELECTOR: Final = 4  # bytes
ADDRESS: Final = 20

Kind = tuple[bytes, bytes]  # the hash of a code and a selector


class KnownCall(NamedTuple):
    """A call or a transaction that runs a code of this hash."""

    target: bytes
    code: bytes
    sender: bytes
    data: bytes

    @property
    def kind(self) -> Kind:
        """The kind of call, shared by calls with the same code and selector."""
        return self.code, self.data[:SELECTOR]


class CallWords:
    """The words of some calls."""

    def __init__(self, calls: Sequence[KnownCall]) -> None:
        arguments = [each.data[SELECTOR:] for each in calls]
        self._calls: Final = calls
        self._text: Final = b"".join(arguments)
        self._ends: Final = list(accumulate(map(len, arguments)))
        self._sent: Final[defaultdict[bytes, list[int]]] = defaultdict(list)
        for place, call in enumerate(calls):
            self._sent[call.sender].append(place)

    def having(self, words: Iterable[bytes]) -> list[KnownCall]:
        """The calls that have one of these words or addresses, in their order."""
        found: set[int] = set()
        for word in words:
            found.update(self._sent.get(word[-ADDRESS:], ()))
            found.update(self._with(word))
        return [self._calls[place] for place in sorted(found)]

    def _with(self, word: bytes) -> Iterator[int]:
        at = self._text.find(word)
        while at >= 0:
            place = bisect_right(self._ends, at)
            yield place
            at = self._text.find(word, self._ends[place])


MOST_KINDS: Final = 4_096
MOST_RULES: Final = 32  # of one kind
MOST_WATCHED: Final = 1_024  # keys that were held back
HELD_FIRST, HELD_LAST = 8, 512  # predictions between two that are held back, more and more
MOST_STRIKES: Final = 2  # times in a row that what was held back was not missed
NESTED: Final = 3  # hashes of hashes
STRUCT: Final = 64  # slots from a hash on that are members of its value
WORD: Final = 32
SMALL: Final = 1 << 16  # smaller numbers are places of mappings, or keys that anybody may have
_PAD: Final = bytes(WORD - ADDRESS)
_EMPTY_CODE: Final = keccak256(b"")

Key = tuple[bytes, int]  # an account and a slot


class Sender(Struct, frozen=True, tag=0, array_like=True):
    """The caller."""


class Target(Struct, frozen=True, tag=1, array_like=True):
    """Whom it calls."""


class Data(Struct, frozen=True, tag=2, array_like=True):
    """Bytes of its data: a word, or an address."""

    at: int
    size: int


class Word(Struct, frozen=True, tag=3, array_like=True):
    """A constant word."""

    value: bytes


class Pair(Struct, frozen=True, tag=4, array_like=True):
    """The hash of two words."""

    left: "Term"
    right: "Term"


Term = Sender | Target | Data | Word | Pair


class SlotRule(Struct, frozen=True, array_like=True):
    """Where a slot is: the account, the hash, and how far behind it."""

    owner: Term
    place: Pair
    behind: int


class _Score(Struct):
    uses: int = 0  # since something was held back
    gap: int = HELD_FIRST
    strikes: int = 0

    def is_held(self) -> bool:
        """Count a prediction; whether it is one that is held back."""
        self.uses += 1
        if self.uses < self.gap:
            return False
        self.uses = 0
        return True

    def was_right(self) -> None:
        """Record that a prediction which was held back would have been right."""
        self.strikes = 0
        self.gap = min(2 * self.gap, HELD_LAST)


class CallTemplates:
    """Rules by kind of call, those that were used last at the end; called on one thread."""

    def __init__(self, most_kinds: int = MOST_KINDS) -> None:
        self._kinds: Final = LruCache[Kind, dict[SlotRule, _Score]](most_kinds)
        self._watched: Final = LruCache[Key, _Score](MOST_WATCHED)
        self._changed: Final[dict[Kind, None]] = {}  # and not stored yet, or removed

    def __len__(self) -> int:
        return len(self._kinds)

    def rules(self, kind: Kind) -> tuple[SlotRule, ...]:
        """The rules of a kind of call."""
        return tuple(self._kinds.get(kind) or ())

    def take(self, kept: Mapping[Kind, Iterable[SlotRule]]) -> None:
        """Begin with the stored set."""
        for kind, rules in kept.items():
            for rule in rules:
                self._add(kind, rule)
        self._changed.clear()

    def take_changes(self) -> tuple[dict[Kind, tuple[SlotRule, ...]], list[Kind]]:
        """Return kinds that have changed since the last call, and some that are gone."""
        changed = list(self._changed)
        self._changed.clear()
        put = {each: self.rules(each) for each in changed if each in self._kinds}
        return put, [each for each in changed if each not in self._kinds]

    def learn(
        self,
        calls: Sequence[KnownCall],
        missed: Mapping[bytes, Collection[int]],
        hashed: Mapping[bytes, bytes],
    ) -> None:
        """Learn from what calls have missed together, and the words that they have hashed."""
        hashes, words = sorted(int.from_bytes(each) for each in hashed), CallWords(calls)
        for owner, slots in missed.items():
            for slot in slots:
                self._seen((owner, slot))
                at = bisect_right(hashes, slot) - 1
                if at >= 0 and slot - hashes[at] < STRUCT:
                    named = _words(hashes[at].to_bytes(WORD), hashed, NESTED, is_key=False)
                    may_be = words.having((owner, *named))
                    self._explain(may_be, owner, hashes[at], slot - hashes[at], hashed)

    def predict(self, call: KnownCall, is_unknown: Callable[[Key], bool]) -> Iterator[Key]:
        """The keys that a call will read, and that are unknown."""
        rules = self._kinds.get(call.kind)
        if rules is None:
            return
        for rule, score in list(rules.items()):
            key = key_of(rule, call)
            if key is None or key in self._watched or not is_unknown(key):
                continue
            if not score.is_held():
                yield key
            elif score.strikes >= MOST_STRIKES:
                self._forget(call.kind, rule)
            else:
                score.strikes += 1
                self._watch(key, score)

    def _explain(
        self,
        calls: Sequence[KnownCall],
        owner: bytes,
        place: int,
        behind: int,
        hashed: Mapping[bytes, bytes],
    ) -> None:
        """Add rules by which calls may have come to a slot.

        Where several could be, only those count that name the account.
        """
        found = [(each, rule_of(each, owner, place, behind, hashed)) for each in calls]
        rules = [(each.kind, rule) for each, rule in found if rule is not None]
        named = [each for each in rules if not isinstance(each[1].owner, Word)]
        for kind, rule in named or (rules if len(rules) == 1 else ()):
            self._add(kind, rule)

    def _add(self, kind: Kind, rule: SlotRule) -> None:
        rules = self._kinds.get(kind) or {}
        if rule in rules:
            return
        rules[rule] = _Score()
        self._changed[kind] = None
        if len(rules) > MOST_RULES:
            del rules[next(iter(rules))]
        self._changed.update(dict.fromkeys(self._kinds.keep(kind, rules)))

    def _forget(self, kind: Kind, rule: SlotRule) -> None:
        rules = self._kinds.get(kind) or {}
        rules.pop(rule, None)
        if not rules:
            self._kinds.pop(kind)
        self._changed[kind] = None

    def _watch(self, key: Key, score: _Score) -> None:
        self._watched.keep(key, score)

    def _seen(self, key: Key) -> None:
        """A run has missed a key; it may have been held back."""
        score = self._watched.pop(key)
        if score is not None:
            score.was_right()


def call_of(
    account: Callable[[bytes], Account | None], sender: bytes, to: bytes | None, data: bytes
) -> KnownCall | None:
    """A call, if it is one of a function of a code whose hash is known."""
    if not to or len(data) < SELECTOR:
        return None
    try:
        found = account(to)
    except StateMissing:
        return None
    if found is None or found.code_hash == _EMPTY_CODE:
        return None
    return KnownCall(to, found.code_hash, sender, data)


def is_unknown(read: Callable[[bytes, int], int], key: Key) -> bool:
    """Return True if reading a slot misses something."""
    try:
        read(*key)
    except StateMissing:
        return True
    return False


def key_of(rule: SlotRule, call: KnownCall) -> Key | None:
    """Where a call finds the slot of a rule; None if its data is too short."""
    owner, place = _value(rule.owner, call), _value(rule.place, call)
    if owner is None or place is None or not owner.startswith(_PAD):
        return None
    return owner[-ADDRESS:], (int.from_bytes(place) + rule.behind) % (1 << 256)


def _value(term: Term, call: KnownCall) -> bytes | None:
    match term:
        case Sender():
            return _PAD + call.sender
        case Target():
            return _PAD + call.target
        case Data(at, size):
            part = call.data[at : at + size]
            return part.rjust(WORD, b"\0") if len(part) == size else None
        case Word(value):
            return value
        case Pair(left, right):
            first, second = _value(left, call), _value(right, call)
            return None if first is None or second is None else keccak256(first + second)


def _words(
    word: bytes, hashed: Mapping[bytes, bytes], depth: int, *, is_key: bool
) -> Iterator[bytes]:
    """The words of which a call must have one for which `rule_of` finds a rule (`_term`)."""
    pair = hashed.get(word) if depth else None
    if pair is not None:
        yield from _words(pair[:WORD], hashed, depth - 1, is_key=True)
        yield from _words(pair[WORD:], hashed, depth - 1, is_key=False)
    elif int.from_bytes(word) >= SMALL:
        yield word[-ADDRESS:] if word.startswith(_PAD) else word
    elif is_key and any(word):
        yield word


def rule_of(
    call: KnownCall, owner: bytes, place: int, behind: int, hashed: Mapping[bytes, bytes]
) -> SlotRule | None:
    """How a call came to a slot; None if any other call comes to the same one."""
    term = _term(place.to_bytes(WORD), call, hashed, NESTED, is_key=False)
    if not isinstance(term, Pair):
        return None
    who = Target() if owner == call.target else _term(_PAD + owner, call, {}, 0, is_key=True)
    return SlotRule(who, term, behind) if _varies(term) or _varies(who) else None


def _term(
    word: bytes, call: KnownCall, hashed: Mapping[bytes, bytes], depth: int, *, is_key: bool
) -> Term:
    """The role of a word in a call: a small number may be a key or a position."""
    pair = hashed.get(word) if depth else None
    if pair is not None:
        left = _term(pair[:WORD], call, hashed, depth - 1, is_key=True)
        return Pair(left, _term(pair[WORD:], call, hashed, depth - 1, is_key=False))
    if int.from_bytes(word) < SMALL:
        return (is_key and _aligned(word, call)) or Word(word)
    if word.startswith(_PAD):
        at = call.data.find(word[-ADDRESS:], SELECTOR)
        if at >= 0:
            return Data(at, ADDRESS)
        if word[-ADDRESS:] == call.sender:
            return Sender()
        return Target() if word[-ADDRESS:] == call.target else Word(word)
    at = call.data.find(word, SELECTOR)
    return Data(at, WORD) if at >= 0 else Word(word)


def _aligned(word: bytes, call: KnownCall) -> Data | None:
    """Where an argument is this small number, if it is not zero."""
    if any(word):
        for at in range(SELECTOR, len(call.data) - WORD + 1, WORD):
            if call.data[at : at + WORD] == word:
                return Data(at, WORD)
    return None


def _varies(term: Term) -> bool:
    """Return True if the term differs between calls."""
    if isinstance(term, Pair):
        return _varies(term.left) or _varies(term.right)
    return isinstance(term, Sender | Data)


def want_predicted(
    templates: CallTemplates,
    overlay: Overlay,
    transactions: Sequence[Transaction],
    missed: MissingKeys,
    wanted: MissingState,
) -> None:
    """Learn from the keys that transactions have missed, and add those that templates predict."""
    calls = list(_calls(overlay, transactions))
    templates.learn(calls, missed.slots, missed.hashed)
    for call in calls:
        for address, slot in templates.predict(call, lambda key: is_unknown(overlay.storage, key)):
            _want(overlay, wanted, address, slot)


def _calls(overlay: Overlay, transactions: Sequence[Transaction]) -> Iterator[KnownCall]:
    for each in transactions:
        call = call_of(overlay.account, each.sender, each.to, each.input)
        if call is not None:
            yield call


def _want(overlay: Overlay, wanted: MissingState, address: bytes, slot: int) -> None:
    try:
        overlay.storage(address, slot)
    except StateMissing as missing:
        wanted.add(missing.misses)


TEMPLATES: Final = b"M"
_encode_rules: Final = msgspec.msgpack.Encoder().encode
_decode_rules: Final = msgspec.msgpack.Decoder(list[SlotRule]).decode


def put_templates(
    store: Store, put: Mapping[Kind, Iterable[SlotRule]], gone: Sequence[Kind]
) -> None:
    """Keep these templates, and those no longer."""
    rows = [(_row_key(kind), _encode_rules(list(rules))) for kind, rules in put.items()]
    if rows or gone:
        store.put_rows(rows, [_row_key(kind) for kind in gone])


def read_templates(view: View) -> dict[Kind, list[SlotRule]]:
    """All templates. Raises `StoreDamaged`."""
    return dict(map(_template, view.rows(TEMPLATES, 2 * MOST_KINDS)))


def _row_key(kind: Kind) -> bytes:
    return TEMPLATES + kind[0] + kind[1]


def _template(row: tuple[bytes, bytes]) -> tuple[Kind, list[SlotRule]]:
    key, value = row
    code, selector = key[len(TEMPLATES) :][:WORD], key[len(TEMPLATES) + WORD :]
    try:
        if len(selector) == SELECTOR:
            return (code, selector), _decode_rules(value)
    except msgspec.MsgspecError:
        pass
    raise StoreDamaged(f"the row of a template: {key.hex()}")
