"""A mostly known token, and transfers of new users: one round for each instead of two.

The second slot of a transfer depends on the first, so a run without the first value reads another
slot instead.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foreblock._engine import (
    Allowance,
    FetchedState,
    Message,
    MissingKeys,
    Overlay,
    Store,
    Transaction,
    keccak256,
    unsigned_transaction,
)
from foreblock.ledger.following.call_templates import CallTemplates, want_predicted
from foreblock.ledger.following.missing_state import MissingState
from support.payloads.bytecode import code
from support.payloads.small_store import append, env, word

TOKEN = b"\x70" * 20
PEOPLE = [keccak256(word(each))[:20] for each in range(400)]
MOST_ROUNDS = 8
# Reads balances[caller] and, if that is not zero, balances[word at 4]; else balances[0].
TRANSFERS = bytes.fromhex(
    code(
        "CALLER", 0, "MSTORE", 64, 0, "KECCAK256", "SLOAD", "ISZERO", "ISZERO",
        4, "CALLDATALOAD", "MUL", 0, "MSTORE", 64, 0, "KECCAK256", "SLOAD", "POP", "STOP",
    )[2:]
)  # fmt: skip


def balance_slot(who: bytes) -> int:
    return int.from_bytes(keccak256(who.rjust(32, b"\0") + bytes(32)))


def transfer(sender: bytes, to: bytes) -> Transaction:
    message = Message(
        sender=sender, to=TOKEN, data=b"\xa9\x05\x9c\xbb" + to.rjust(32, b"\0"), gas=100_000,
        max_fee_per_gas=0, max_priority_fee_per_gas=0,
    )  # fmt: skip
    return unsigned_transaction(message, 1, 0)


def fill(overlay: Overlay) -> None:
    for each in PEOPLE:
        overlay.set(each, balance=10**18)
    balances = {balance_slot(each): 5 for each in PEOPLE}
    overlay.set(TOKEN, code=TRANSFERS, state={**balances, balance_slot(b""): 1}, nonce=1)


class Token:
    """A complete store, and one with the requested state."""

    def __init__(self, folder: Path) -> None:
        self.whole = Store(str(folder / "whole"), write=True, sync=False)
        append(self.whole, fill)
        self.part = Store(str(folder / "part"), write=True, sync=False)
        self.learned = FetchedState(1)
        self.part.set_fallback_state(self.learned)
        with self.whole.view() as view:
            self.root = view.state(0).trie().root()
        batch = self.part.batch()
        batch.begin_at(0, word(0), self.root, 1)
        self.part.commit(batch)

    def missed(self, overlay: Overlay, *transactions: Transaction) -> MissingKeys:
        return overlay.probe(env(number=1), list(transactions), Allowance())

    def rounds(self, templates: CallTemplates | None, *transactions: Transaction) -> int:
        """Count the requests until all state that transactions read is known."""
        for rounds in range(MOST_ROUNDS):
            with self.part.view() as view:
                overlay = view.state(0).overlay()
                missed = self.missed(overlay, *transactions)
                if not missed:
                    return rounds
                wanted = MissingState()
                wanted.need(missed)
                if templates is not None:
                    want_predicted(templates, overlay, transactions, missed, wanted)
            self.prove(wanted)
        raise AssertionError("it never has enough")

    def prove(self, wanted: MissingState) -> None:
        with self.whole.view() as view:
            state = view.state(0)
            for address in wanted.accounts | wanted.slots.keys():
                slots = sorted(wanted.slots.get(address, ()))
                proof = state.prove(address, slots)
                nodes = [(slot, proof.slot(place)[1]) for place, slot in enumerate(slots)]
                self.learned.prove(self.root, address, proof.account_nodes, nodes)
            for address in wanted.codes.values():
                self.learned.put_code(state.code(address))


@pytest.fixture
def token(tmp_path: Path) -> Iterator[Token]:
    with opened(tmp_path) as made:
        yield made


@contextmanager
def opened(folder: Path) -> Iterator[Token]:
    made = Token(folder)
    try:
        yield made
    finally:
        made.whole.close()
        made.part.close()


def test_a_new_user_of_a_known_token_takes_one_round(token: Token) -> None:
    templates = CallTemplates()
    assert token.rounds(templates, transfer(PEOPLE[0], PEOPLE[1])) > 1, "nothing is known"
    assert token.rounds(None, transfer(PEOPLE[2], PEOPLE[3])) == 2, "without templates"
    assert token.rounds(templates, transfer(PEOPLE[4], PEOPLE[5])) == 1
    many = [transfer(PEOPLE[at], PEOPLE[at + 1]) for at in range(6, 12, 2)]
    assert token.rounds(templates, *many) == 1
    assert token.rounds(templates, *many) == 0


def test_a_run_says_how_the_slots_that_it_misses_came_about(token: Token) -> None:
    who, to = PEOPLE[20], PEOPLE[21]
    token.rounds(None, transfer(PEOPLE[0], PEOPLE[1]))
    with token.part.view() as view:
        missed = token.missed(view.state(0).overlay(), transfer(who, to))
    slot = balance_slot(who)
    assert missed.hashed[slot.to_bytes(32)] == who.rjust(32, b"\0") + bytes(32)
    assert all(keccak256(pair) == found for found, pair in missed.hashed.items())
    assert {int.from_bytes(each) for each in missed.hashed} == set(missed.slots[TOKEN])
    assert missed == MissingKeys(missed.accounts, missed.slots, missed.codes, missed.blocks), (
        "no keys"
    )
