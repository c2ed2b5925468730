"""Proofs at later blocks, adapted to a block here: never with a wrong value."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock._engine import Proof, keccak256
from foreblock.errors import StateMissing
from foreblock.ledger.following.roots_behind import RootsBehind, rebase_proof
from support.chains.following import Truth
from support.chains.partial_following import PartialFollowing
from support.chains.writing import FACTORY, NOBODY, PASSER, SCRIBE, SENDERS, WITNESS

ANCHOR, HERE, TIP = 2, 5, 8
UNTOUCHED = (FACTORY, WITNESS)  # untouched by every block
ACCOUNTS = (*SENDERS, NOBODY, SCRIBE, PASSER, *UNTOUCHED, b"\x99" * 20)
SLOTS = [0, 1, 2, 3]


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Truth]:
    made = Truth(tmp_path / "truth")
    made.grow(TIP, "chain")
    yield made
    made.close()


@pytest.fixture
def partial(tmp_path: Path, truth: Truth) -> Iterator[PartialFollowing]:
    """A follower some blocks behind the tip, which knows the nodes touched by blocks."""
    made = PartialFollowing(tmp_path / "partial", truth, ANCHOR)
    made.canonical(*(truth.blocks[number] for number in range(ANCHOR + 1, HERE + 1)))
    roots = RootsBehind(made.store, truth.profile)
    while (due := roots.due()) is not None:
        outcome = roots.compute(due, [])
        if outcome.needed:
            nodes = [
                node
                for address, slots in (outcome.needed.before or outcome.needed.after).items()
                for node in _nodes(_proof(truth, due.parent.number, address, list(slots)))
            ]
            outcome = roots.compute(due, nodes)
        assert not outcome.needed
        assert not outcome.difference
    made.canonical(truth.blocks[HERE + 1])  # with this commit the nodes are stored
    yield made
    made.close()


def _proof(truth: Truth, at: int, address: bytes, slots: list[int]) -> Proof:
    with truth.store.view() as view:
        return view.state(at).prove(address, slots)


def _nodes(proof: Proof) -> list[bytes]:
    return [*proof.account_nodes, *(n for at in range(len(proof)) for n in proof.slot(at)[1])]


def _fitted(partial: PartialFollowing, address: bytes, nodes: list[bytes]) -> Proof | None:
    partial.learned.put_nodes(nodes)
    with partial.store.view() as view:
        return rebase_proof(view, address, SLOTS)


def test_what_no_block_between_has_touched_is_proven_by_the_tip(
    truth: Truth, partial: PartialFollowing
) -> None:
    root = truth.headers[HERE].state_root
    for address in UNTOUCHED:
        with partial.store.view() as view, pytest.raises(StateMissing):
            view.state(HERE).account(address)
        tip = _proof(truth, TIP, address, SLOTS)
        fitted = _fitted(partial, address, _nodes(tip))
        assert fitted is not None
        assert keccak256(fitted.account_nodes[0]) == root
        assert keccak256(tip.account_nodes[0]) != root
        slots = [(slot, fitted.slot(at)[1]) for at, slot in enumerate(SLOTS)]
        account, _ = partial.learned.prove(root, address, fitted.account_nodes, slots)
        assert account is not None
        assert tip.account is not None
        assert account.code_hash == tip.account.code_hash


def test_whatever_fits_is_the_value_of_the_block_here(
    truth: Truth, partial: PartialFollowing
) -> None:
    fitting = 0
    for address in ACCOUNTS:
        tip = _nodes(_proof(truth, TIP, address, SLOTS))
        fitted = _fitted(partial, address, tip)
        if fitted is None:
            continue
        fitting += 1
        here = _proof(truth, HERE, address, SLOTS)
        assert list(fitted.account_nodes) == list(here.account_nodes)
        assert [fitted.slot(at) for at in range(4)] == [here.slot(at) for at in range(4)]
    assert fitting > len(UNTOUCHED)


def test_without_the_nodes_above_it_nothing_fits(tmp_path: Path, truth: Truth) -> None:
    fresh = PartialFollowing(tmp_path / "fresh", truth, ANCHOR)
    tip = _nodes(_proof(truth, TIP, FACTORY, SLOTS))
    assert _fitted(fresh, FACTORY, tip) is None
    fresh.close()
