"""The state at a partial block is a function of its transactions and the parent, at any time.

Random blocks are written index by index, with the work behind the head done in random slices, and
random restarts of the writer. A second store gets the sealed blocks by strict import, so that every
parent has flat state; on it each partial block is executed again from its raw transactions. Folded
or not, both must have the same state, read account by account, and written rows must not change.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import (
    Block,
    Header,
    Store,
    Transaction,
    View,
    decode_transactions,
)
from foreblock.ledger.genesis.genesis_file import read_genesis
from foreblock.ledger.importing.importer import Chain as StrictChain
from foreblock.ledger.rules.execution import Execution, Task, WorkingState, execute
from foreblock.ledger.storage import partial_rows, rows
from foreblock.ledger.storage.chain_head import read_chain_head
from foreblock.ledger.storage.open_store import begin_chain
from support.chains.profiles import JOVIAN
from support.chains.writing import (
    CANYON,
    DEPOSITOR,
    FACTORY,
    MAKES_MORTAL,
    MORTAL,
    NOBODY,
    PASSER,
    SCRIBE,
    SENDERS,
    WITNESS,
    Chain,
    genesis,
)
from support.payloads.ledger_state import Model, changed, dump, root_from_scratch

Step = tuple[Any, ...]

WHO = st.integers(0, 2)
STEPS = st.one_of(
    st.tuples(
        st.just("transfer"),
        WHO,
        st.sampled_from([NOBODY, MORTAL, DEPOSITOR, SENDERS[1]]),
        st.integers(0, 3),
    ),
    st.tuples(
        st.just("write"),
        WHO,
        st.sampled_from([SCRIBE, PASSER, MORTAL]),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    st.tuples(st.just("create"), WHO),
    st.tuples(st.just("deploy"), WHO),
    st.tuples(st.just("call"), WHO, st.sampled_from([MORTAL, MORTAL, WITNESS])),
    st.tuples(st.just("mint"), st.sampled_from([NOBODY, MORTAL]), st.integers(0, 2)),
)


@dataclass(frozen=True)
class Index:
    """The transactions of an index, and the work after its commit."""

    steps: list[Step]
    slices: list[int]  # of the work behind the head
    reopen: bool


INDICES = st.builds(
    Index,
    st.lists(STEPS, max_size=4),
    st.lists(st.sampled_from([0, 1, 3, 40]), max_size=3),
    st.sampled_from([False, False, False, True]),
)
PLANS = st.lists(st.lists(INDICES, min_size=1, max_size=3), min_size=1, max_size=4)


def transaction(chain: Chain, step: Step) -> Transaction:
    match step:
        case "transfer", who, to, value:
            return chain.signed(who, to, value)
        case "write", who, contract, slot, value:
            return chain.write(contract, slot, value, who)
        case "create", who:
            return chain.signed(who, FACTORY, 0, MAKES_MORTAL)
        case "deploy", who:
            return chain.signed(who, None, 0, MAKES_MORTAL)
        case "call", who, contract:
            return chain.signed(who, contract, 0)
        case "mint", to, amount:
            return chain.deposit(to, mint=2 * amount, value=amount)
        case _:
            raise AssertionError(step)


class Reference:
    """The sealed blocks in a separate store, each with its whole state in flat tables."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.store = Store(str(folder), write=True)
        text = read_genesis(genesis(config))
        self.profile = text.profile
        begin_chain(self.store, text)

    def add(self, header: Header, raws: list[bytes]) -> None:
        chain = StrictChain(self.store, self.profile)
        chain.add(Block(header, raws, (), ()))
        chain.commit()
        chain.close()

    def execute(self, header: Header, raws: list[bytes]) -> tuple[Execution, Model, bytes]:
        """The outcomes of these transactions, the state after them, and its root."""
        block = Block(header, raws, (), ())
        with self.store.view() as view:
            tip = read_chain_head(view, self.profile)
            state = view.state(tip.header.number)
            scratch = WorkingState(state.overlay(), self.store.trie(), self.store.batch().next)
            rules = tip.rules_of_next(header.timestamp, self.profile)
            task = Task(block, decode_transactions(raws), rules, tip.rules, self.profile)
            execution = execute(task, scratch)
            root = scratch.root()
            changes, _ = scratch.finish()
            return execution, changed(dump(state), changes), root


@dataclass
class Watcher:
    """Records every partial block at its commit."""

    chain: Chain
    reference: Reference
    states: dict[int, Model] = field(default_factory=dict)
    rows: dict[int, list[tuple[bytes, bytes]]] = field(default_factory=dict)
    raws: list[bytes] = field(default_factory=list)  # of the block in progress

    def committed(self) -> None:
        """Compare the committed partial block with its execution from scratch."""
        header, partial = self.chain.block.header, self.chain.block.partials[-1]
        assert header is not None
        with self.chain.store.view() as view:
            assert view.heads.pending == partial
            row = view.row(partial_rows.transactions_key(header.number, partial))
            assert row is not None
            self.raws += rows.decode_items(row)
            self.rows[partial] = rows_of(view, header.number, partial)
            execution, model, root = self.reference.execute(header, self.raws)
            assert dump(view.state_of_partial(partial)) == model
            assert view.state_of_partial(partial).trie().root() == root
        found = execution.header
        assert header.gas_used == found.gas_used
        assert header.receipts_root == found.receipts_root
        assert header.logs_bloom == found.logs_bloom
        self.states[partial] = model

    def sealed(self, header: Header) -> None:
        self.reference.add(header, self.raws)
        self.raws.clear()

    def check_unchanged(self) -> None:
        """Check that work behind the head has changed nothing."""
        with self.chain.store.view() as view:
            for partial, model in self.states.items():
                assert dump(view.state_of_partial(partial)) == model
                stored = view.partial(partial)
                assert stored is not None
                assert rows_of(view, stored.block, partial) == self.rows[partial]


def rows_of(view: View, block: int, partial: int) -> list[tuple[bytes, bytes]]:
    """All rows of a partial block except the one that is completed later."""
    prefix = partial_rows.partial_key(block, partial)[:-1]
    return [(key, value) for key, value in view.rows(prefix, 10) if key[-1:] != b"w"]


@contextmanager
def folder() -> Iterator[Path]:
    """A folder in memory if available: this test does not depend on the disk."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder in it has a random name
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@pytest.mark.parametrize("config", [JOVIAN, CANYON], ids=["jovian", "canyon"])
@given(plan=PLANS)
def test_partials_are_what_their_transactions_make_of_the_parent(
    config: dict[str, Any], plan: list[list[Index]]
) -> None:
    with folder() as place:
        chain = Chain(place / "store", config)
        watcher = Watcher(chain, Reference(place / "reference", config))
        chain.add(chain.deposit())
        watcher.committed()
        for number, block in enumerate(plan):
            for index in block:
                for step in index.steps:
                    chain.block.run([transaction(chain, step)])
                chain.add()
                watcher.committed()
                for entries in index.slices:
                    chain.store.maintain(entries) if entries else chain.writer.follow_up()
                    watcher.check_unchanged()
                if index.reopen:
                    chain.reopen()
            sealed = chain.writer.header_if_sealed(chain.block)
            with chain.store.view() as view:
                state = view.state_of_partial(chain.block.partials[-1])
                assert sealed.state_root == root_from_scratch(place / f"{number}", state)
            watcher.sealed(sealed)
            chain.seal(chain.deposit())
            watcher.committed()
            watcher.check_unchanged()
        chain.run_until_idle()
        watcher.check_unchanged()
        chain.store.close()
        watcher.reference.store.close()
