"""Random state edits, transactions, modes and kills, compared with a plain model.

After each step `pending` equals the model, and `latest` equals the model of the last seal, or of
the last state edit after it if no transaction came before. At the end every sealed root is computed
from scratch, and a follower that trusts state edits has the same blocks.
"""

import tempfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from foreblock.bus.commands import AddBalance, IncreaseTime, Mine, SetAccount, SetMining
from foreblock.ledger.reading.blocks import BlockId
from foreblock.ledger.reading.view import Ledger
from support.chains.checking import DevFollower, heads
from support.chains.dev_chain import ACCOUNTS, DevChain, send
from support.chains.dev_world import SLOTS, Person, World, world_of
from support.chains.whole_state import check_roots

PEOPLE = [bytes([0xA0 + place]) * 20 for place in range(3)]

amounts = st.integers(0, 9)
people = st.sampled_from(PEOPLE)
steps = st.one_of(
    st.tuples(st.just("balance"), people, amounts),
    st.tuples(st.just("add"), people, amounts),
    st.tuples(st.just("nonce"), people, amounts),
    st.tuples(st.just("code"), people, amounts),
    st.tuples(st.just("slot"), people, amounts),
    st.tuples(st.just("send"), people, st.integers(1, 9)),
    st.tuples(st.just("mine"), people, amounts),
    st.tuples(st.just("time"), people, st.integers(1, 9)),
    st.tuples(st.just("wait"), people, st.integers(1, 9)),
    st.tuples(st.just("mode"), people, st.integers(0, 2)),
    st.tuples(st.just("kill"), people, amounts),
)


class Run:
    """A chain, its model, and the model at `latest`."""

    def __init__(self, folder: Path) -> None:
        self.chain = DevChain(folder / "chain", mining="automine")
        self.follower = DevFollower(folder / "follower", self.chain, accept_state_edits=True)
        self.model: World = {each: Person() for each in PEOPLE}
        self.latest = deepcopy(self.model)
        self.mode = "automine"
        self.sent = 0
        self.has_transactions = False
        self.begun = deepcopy(self.model)  # the model at the start of the block in progress
        self.edits: list[Callable[[World], None]] = []  # edits of the block in progress
        self.sends: list[tuple[bytes, int]] = []
        self.people: dict[str, Callable[[bytes, int], None]] = {
            "balance": self.set_balance,
            "add": self.add,
            "nonce": self.set_nonce,
            "code": self.set_code,
            "slot": self.set_slot,
            "send": self.send,
            "mine": lambda *_: self.mine(),
            "time": lambda _, seconds: self.increase_time(seconds),
            "wait": lambda _, seconds: self.wait(seconds),
            "mode": lambda _, which: self.set_mode(("clock", "automine", "manual")[which]),
            "kill": lambda *_: self.kill(),
        }

    def edit(self, change: Callable[[World], None]) -> None:
        change(self.model)
        self.edits.append(change)
        if self.mode != "clock" and not self.has_transactions:
            self.latest = deepcopy(self.model)

    def sealed(self) -> None:
        self.latest, self.has_transactions = deepcopy(self.model), False
        self.begun, self.edits, self.sends = deepcopy(self.model), [], []

    def set_balance(self, who: bytes, amount: int) -> None:
        def change(world: World) -> None:
            world[who].balance = amount

        self.chain.execute(SetAccount(who, amount.to_bytes(32)))
        self.edit(change)

    def add(self, who: bytes, amount: int) -> None:
        balance = self.model[who].balance + amount  # stored as the resulting balance

        def change(world: World) -> None:
            world[who].balance = balance

        self.chain.execute(AddBalance(who, amount.to_bytes(32)))
        self.edit(change)

    def set_nonce(self, who: bytes, amount: int) -> None:
        nonce = self.model[who].nonce + amount

        def change(world: World) -> None:
            world[who].nonce = nonce

        self.chain.execute(SetAccount(who, nonce=nonce))
        self.edit(change)

    def set_code(self, who: bytes, amount: int) -> None:
        code = b"\x00" * amount

        def change(world: World) -> None:
            world[who].code = code

        self.chain.execute(SetAccount(who, code=code))
        self.edit(change)

    def set_slot(self, who: bytes, amount: int) -> None:
        slot = amount % SLOTS
        words = {slot.to_bytes(32): amount.to_bytes(32)}
        # An account with only storage is empty, and is removed when it is touched.
        nonce = max(self.model[who].nonce, 1)

        def change(world: World) -> None:
            world[who].nonce = nonce
            world[who].slots[slot] = amount

        self.chain.execute(SetAccount(who, nonce=nonce, storage=words))
        self.edit(change)

    def send(self, who: bytes, amount: int) -> None:
        if self.mode == "clock":
            self.mine()  # so that this is not combined with work due by time
        self.chain.submit(send(ACCOUNTS[0], self.sent, who, amount, gas=50_000))
        self.sent += 1
        self.model[who].balance += amount
        self.has_transactions = True
        self.sends.append((who, amount))
        if self.mode == "automine":
            self.sealed()
        else:
            self.chain.run(450)

    def mine(self) -> None:
        self.chain.execute(Mine())
        self.sealed()

    def increase_time(self, seconds: int) -> None:
        """Restart the block in progress: its state edits first, then its transactions."""
        self.chain.execute(IncreaseTime(seconds))
        self.model = deepcopy(self.begun)
        for change in self.edits:
            change(self.model)
        if self.mode != "clock":
            self.latest = deepcopy(self.model)
        self.chain.run(450)
        for who, amount in self.sends:
            self.model[who].balance += amount
        if self.mode == "clock":
            self.mine()  # so that the start of the block in progress is known

    def wait(self, seconds: int) -> None:
        self.chain.run(seconds * 1_000)
        if self.mode == "clock":
            self.mine()

    def set_mode(self, mode: str) -> None:
        self.mine()  # the part of the block in progress shown at latest depends on the mode
        self.chain.execute(SetMining(mode))  # type: ignore[arg-type]
        self.mode = mode

    def kill(self) -> None:
        self.chain.kill()
        self.chain.open()

    def check(self) -> None:
        assert self.read("pending") == self.model
        if self.mode != "clock":
            assert self.read("latest") == self.latest

    def read(self, block: BlockId) -> World:
        view = Ledger(self.chain.store, clock=self.chain.clock).view()
        try:
            return world_of(view.state(view.resolve(block)), PEOPLE)
        finally:
            view.close()


@given(st.lists(steps, max_size=25))
def test_random_state_edits_transactions_and_kills(sequence: list[tuple[str, bytes, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder))
        for kind, who, amount in sequence:
            run.people[kind](who, amount)
            run.check()
        run.follower.catch_up()
        assert run.follower.heads == heads(run.chain.store)
        check_roots(run.chain)
        run.follower.close()
        run.chain.kill()
