"""Writing processes: each commits the plan, and reports commits, until it is killed.

Run as `python -m crash.writer FOLDER SEED`. For each line on standard input a writer is forked,
which saves the start of Python. That is safe only here: the forking process has never opened a
store.

Standard output has messages of nine bytes, a letter and a number: `p` is the new process, `b` the
start of a commit, `d` the end of a commit, `x` the exit status of the process.
"""

import os
import sys
from random import Random

from crash.look import MODEL_ROW, STAMP_ROW, block_row
from crash.plan import (
    KEEP_PARTIALS,
    KEEP_STATES,
    STAMP,
    Append,
    Delete,
    Drop,
    Edit,
    Extend,
    Model,
    Put,
    Revive,
    Rewind,
    Seal,
    Step,
    block_hash,
    partial_hash,
)
from foreblock._engine import Batch, Changes, Overlay, Store


def open_to_write(path: str) -> Store:
    return Store(
        path, write=True, keep_states=KEEP_STATES, keep_partials=KEEP_PARTIALS, keep_nodes=5
    )


def read_model(store: Store) -> Model:
    with store.view() as view:
        row = view.row(MODEL_ROW)
        return Model() if row is None else Model.load(row)


class Writer:
    def __init__(self, store: Store, seed: str, random: Random) -> None:
        self.store = store
        self.seed = seed
        self.random = random
        self.model = read_model(store)
        # The changes of partial blocks above their base block: for trie nodes.
        self.changes: dict[int, Changes] = {}

    def commit(self) -> None:
        step = self.model.next(self.seed)
        after = self.model.after(step)
        batch = self.store.batch()
        self.perform(step, batch, after)
        self.stamp(batch, after)
        say(b"b", after.commit)
        heads = self.store.commit(batch)
        say(b"d", after.commit)
        assert heads.commit == after.commit, "the plan counts numbers as the store does"
        self.model = after

    def maintain(self) -> None:
        for _ in range(self.random.choice([0, 0, 1, 1, 2, 10])):
            self.store.maintain(self.random.choice([1, 3, 30, 1000]))

    def perform(self, step: Step, batch: Batch, after: Model) -> None:
        stamp = after.commit
        match step:
            case Append(edits, folds):
                self.append(batch, edits, after, folds=folds)
            case Extend():
                self.extend(batch, step, after)
            case Seal(number):
                self.seal(batch, number, after)
            case Drop(numbers):
                batch.drop(list(numbers), f"dropped by {stamp}")
            case Revive(numbers):
                batch.revive(list(numbers))
            case Rewind(block):
                batch.rewind(block)
                for above in range(block + 1, self.model.latest + 1):
                    batch.delete(block_row(above))
            case Put(key, value):
                batch.put(key, value)
            case Delete(key):
                batch.delete(key)

    def append(self, batch: Batch, edits: tuple[Edit, ...], after: Model, *, folds: bool) -> None:
        stamp = after.commit
        with self.store.view() as view:
            overlay = view.state(self.model.latest).overlay() if stamp > 2 else Overlay.empty()
            changes = edited(overlay, edits, stamp).take(batch.draw())
        nodes = None
        if self.random.random() < 0.5:
            trie = self.store.trie()
            trie.apply(changes)
            nodes = trie.take()
        index = {STAMP_ROW: stamp.to_bytes(8)}
        batch.append(after.latest, block_hash(stamp), changes, nodes, index)
        batch.put(block_row(after.latest), stamp.to_bytes(8))
        if folds:
            batch.fold_all()

    def extend(self, batch: Batch, step: Extend, after: Model) -> None:
        stamp = after.commit
        partial = after.partials[stamp]
        with self.store.view() as view:
            on_block = self.model.latest if step.parent is None else None
            state = (
                view.state(self.model.latest)
                if step.parent is None
                else view.state_of_partial(step.parent)
            )
            changes = edited(state.overlay(), step.edits, stamp).take(batch.draw())
        number = batch.extend(
            partial.block,
            partial.index,
            partial_hash(stamp),
            changes,
            on_block=on_block,
            parent=step.parent,
            parent_hash=partial.parent_hash if step.stacked else None,
            rows={STAMP_ROW: stamp.to_bytes(8)},
        )
        assert number == stamp, "a partial is known by the last number its commit draws"
        if partial.index == 0:
            self.changes[number] = changes
        elif before := self.changes.get(step.parent or 0):
            self.changes[number] = before.merge(changes)

    def seal(self, batch: Batch, number: int, after: Model) -> None:
        nodes = None
        if (changes := self.changes.get(number)) and self.random.random() < 0.5:
            trie = self.store.trie()
            trie.apply(changes)
            if taken := trie.take():
                nodes = (after.latest, taken)
        batch.seal(number, after.blocks[after.latest].hash, nodes)
        batch.put(block_row(after.latest), after.commit.to_bytes(8))

    def stamp(self, batch: Batch, after: Model) -> None:
        batch.pending(after.pending)
        batch.note(after.commit.to_bytes(8))
        batch.put(STAMP_ROW, after.commit.to_bytes(8))
        batch.put(MODEL_ROW, after.dump())


def edited(overlay: Overlay, edits: tuple[Edit, ...], stamp: int) -> Overlay:
    for edit in edits:
        if edit.destroy and overlay.account(edit.address) is not None:
            overlay.set(edit.address, balance=0, nonce=0, code=b"")
            # Touching an empty account destroys it (EIP-161).
            overlay.credit(edit.address, 0)
        if edit.balance is None:
            continue
        slots = dict(edit.slots)
        overlay.set(
            edit.address,
            balance=edit.balance,
            nonce=edit.nonce,
            code=edit.code,
            state=slots if edit.wipe else None,
            state_diff=None if edit.wipe else slots,
        )
    overlay.set(STAMP, balance=stamp, nonce=1, state_diff={0: stamp})
    return overlay


def say(what: bytes, number: int) -> None:
    os.write(1, what + number.to_bytes(8, signed=True))


def write(path: str, seed: str) -> None:
    with open_to_write(path) as store:
        writer = Writer(store, seed, Random())
        while True:
            writer.commit()
            writer.maintain()


def main(path: str, seed: str) -> None:
    while os.read(0, 1):
        process = os.fork()
        if process == 0:
            write(path, seed)
        say(b"p", process)
        _, status = os.waitpid(process, 0)
        say(b"x", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(*sys.argv[1:])
