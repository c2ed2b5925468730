"""Commands that are put off: as if each had been carried out at once, also by who is killed."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import Batch, CommandPath, CommandQueue, Heads, Store
from foreblock.bus.commands import (
    AddBalance,
    AnyCommand,
    IncreaseTime,
    Mine,
    Revert,
    SetAccount,
    TakeSnapshot,
)
from foreblock.bus.deferral import NOT_DONE, NOT_PUT_OFF
from foreblock.ledger.reading.fast_path import FastPathBounds, make_fast_path
from foreblock.ledger.storage.commits import TO_STORE
from foreblock.methods import make_families
from foreblock.methods.dev.commanding import PUT_OFF
from foreblock.methods.options import Options
from foreblock.methods.sequencing import Sequencing
from foreblock.sources import deferring
from foreblock.sources.command_journal import CommandJournal, JournaledCommand
from foreblock.sources.deferring import MOST_COMMANDS, DeferredChanges, LoopDeferral
from foreblock.types import Transaction
from support.chains.dev_chain import ACCOUNTS, DevChain, send
from support.chains.dev_service import InProcess
from support.chains.whole_state import check_roots
from support.servers.long_work import scheduler
from support.servers.waiting import PATIENCE

PEOPLE = [bytes([0xA0 + place]) * 20 for place in range(3)]


class Killed(BaseException):
    """The process ends here."""


class Fragile:
    """Commits of a process that is killed before or after one of them."""

    def __init__(self) -> None:
        self.left: int | None = None  # commits; None: for ever

    def commit(self, store: Store, batch: Batch) -> Heads:
        if self.left == 0:
            raise Killed
        heads = TO_STORE.commit(store, batch)
        if self.left is not None:
            self.left -= 1
        return heads


class Deferred:
    """A chain whose commands are put off."""

    def __init__(self, folder: Path) -> None:
        self.commits = Fragile()
        self.chain = DevChain(folder / "deferred", mining="automine", commits=self.commits)
        self.file = folder / "commands"
        self.open()

    def open(self) -> None:
        self.changes = DeferredChanges(self.chain.sequencer, CommandJournal(self.file))

    def execute(self, command: AnyCommand, *, as_request: bool = False) -> Any:  # noqa: ANN401, its own
        """The result of a command; as a request, the engine may take it from its bytes."""
        if as_request and (answer := self.ask(command)) is not NOT_PUT_OFF:
            return answer
        result = self.changes.put_off(command)
        if result is not NOT_PUT_OFF:
            return result
        self.changes.carry_out()
        return self.chain.execute(command)

    def ask(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """The result of a command that the engine takes from the bytes of its request."""
        asked = request_of(command)
        if asked is None:
            return NOT_PUT_OFF
        path = command_path(self.chain.store, self.changes.queue)
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, **asked})
        path.cache_head(b"POST", len(body), b"", b"")
        answer = path.answer(b"POST\r\n\r\n" + body, b"")
        if answer is None:
            return NOT_PUT_OFF
        result = msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])["result"]
        if isinstance(command, TakeSnapshot):
            return int(result, 16)
        return result if isinstance(command, Revert) else None

    def begin_again(self) -> None:
        self.commits.left = None
        self.changes.close()
        del self.changes
        self.chain.kill()
        self.chain.open()
        self.open()

    def settle(self, *, killed_after: int | None = None) -> None:
        """Carry out what waits; who is killed meanwhile goes on."""
        self.commits.left = killed_after
        try:
            self.changes.carry_out()
            self.commits.left = None
        except Killed:
            self.begin_again()

    def join(self, change: Callable[[], object]) -> None:
        """Carry out what waits together with a change."""
        self.changes.carry_out(is_followed=True)
        change()
        self.changes.end()


def command_path(store: Store, queue: CommandQueue) -> CommandPath:
    bounds = FastPathBounds(batch_items=1, batch_bytes=1, call_gas=0, call_us=0, step_us=0)
    return CommandPath(make_fast_path(store, bounds), queue, dict.fromkeys(CommandPath.NAMES, 0))


def request_of(command: AnyCommand) -> dict[str, object] | None:
    """How a client asks for a command, where the engine knows that."""
    match command:
        case SetAccount(who, balance, None, None, None) if balance is not None:
            return _request("anvil_setBalance", f"0x{who.hex()}", hex(int.from_bytes(balance)))
        case SetAccount(who, None, None, None, {} as slots) if slots:
            ((slot, value),) = slots.items()
            place, word = hex(int.from_bytes(slot)), f"0x{value.hex()}"
            return _request("anvil_setStorageAt", f"0x{who.hex()}", place, word)
        case TakeSnapshot():
            return _request("evm_snapshot")
        case Revert(number):
            return _request("evm_revert", hex(number))
        case _:
            return None


def _request(method: str, *params: str) -> dict[str, object]:
    return {"method": method, "params": params}


def world(chain: DevChain) -> dict[bytes, tuple[int, list[int]]]:
    """What there is at `pending`."""
    with chain.store.view() as view:
        assert view.heads.pending is not None
        state = view.state_of_partial(view.heads.pending)
        return {
            each: (state.balance(each), [state.storage(each, slot) for slot in range(3)])
            for each in PEOPLE
        }


def times(chain: DevChain) -> tuple[int, int, int]:
    """Of the latest block, of the one in progress, and of the chain."""
    sequencer = chain.sequencer
    return sequencer.parent.timestamp, sequencer.base.timestamp, sequencer.time


class AsRequest(NamedTuple):
    """A command that comes as a request."""

    command: AnyCommand


people = st.sampled_from(PEOPLE)
amounts = st.integers(1, 9)
commands = st.one_of(
    st.builds(lambda who, much: SetAccount(who, much.to_bytes(32)), people, amounts),
    st.builds(lambda who, much: AddBalance(who, much.to_bytes(32)), people, amounts),
    st.builds(
        lambda who, much: SetAccount(who, storage={(much % 3).to_bytes(32): much.to_bytes(32)}),
        people,
        amounts,
    ),
    st.builds(
        lambda who, much: SetAccount(
            who, b"\1".rjust(32, b"\0"), storage={(much % 3).to_bytes(32): much.to_bytes(32)}
        ),
        people,
        amounts,
    ),
    st.just(TakeSnapshot()),
    st.builds(IncreaseTime, st.integers(0, 50)),
    st.builds(Revert, st.integers(0, 6)),
)
steps = st.one_of(
    commands,
    commands,
    st.builds(AsRequest, commands),
    st.builds(AsRequest, commands),
    st.just("settle"),
    st.just("send"),
    st.just("mine"),
    st.just("kill"),
    st.integers(0, 4),  # kills after so many commits
)


def _send(chain: DevChain) -> None:
    nonce = chain.sequencer.next_nonce(ACCOUNTS[0].address)
    chain.submit(send(ACCOUNTS[0], nonce, PEOPLE[0], 5, gas=50_000))


CHANGES: dict[object, Callable[[DevChain], object]] = {
    "send": _send,
    "mine": lambda chain: chain.execute(Mine()),
}


@given(st.lists(steps, min_size=5, max_size=40))
def test_what_is_put_off_is_as_if_it_was_not(
    todo: list[AnyCommand | AsRequest | str | int],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        eager = DevChain(Path(folder) / "eager", mining="automine")
        deferred = Deferred(Path(folder))
        for step in (*todo, "settle"):
            if isinstance(step, AsRequest):
                expected = eager.execute(step.command)
                assert deferred.execute(step.command, as_request=True) == expected
                continue
            if not isinstance(step, str | int):
                assert deferred.execute(step) == eager.execute(step)
                continue
            if step == "kill":
                deferred.begin_again()
            elif step in CHANGES:
                CHANGES[step](eager)
                deferred.join(partial(CHANGES[step], deferred.chain))
                if step == "mine":  # what went along is there after a kill
                    deferred.begin_again()
            else:
                deferred.settle(killed_after=step if isinstance(step, int) else None)
            assert world(deferred.chain) == world(eager)
            assert deferred.chain.sequencer.parent.number == eager.sequencer.parent.number
            assert times(deferred.chain) == times(eager)
            assert (
                deferred.chain.sequencer.state.next_snapshot == eager.sequencer.state.next_snapshot
            )
            for number in range(8):
                block = deferred.chain.sequencer.snapshots.block_of(number)
                assert block == eager.sequencer.snapshots.block_of(number)
        deferred.chain.execute(Mine())
        check_roots(deferred.chain)


def commits(chain: DevChain) -> int:
    return chain.writer.last_commit


def test_accounts_that_are_set_one_after_the_other_are_one_commit(tmp_path: Path) -> None:
    deferred = Deferred(tmp_path)
    before = commits(deferred.chain)
    for number in range(100):
        words = {number.to_bytes(32): b"\1".rjust(32, b"\0")}
        assert deferred.execute(SetAccount(PEOPLE[0], storage=words)) is None
    assert commits(deferred.chain) == before
    deferred.settle()
    assert commits(deferred.chain) == before + 1


def test_a_snapshot_goes_with_the_change_that_follows_it(tmp_path: Path) -> None:
    deferred = Deferred(tmp_path)
    before = commits(deferred.chain)
    taken = deferred.execute(TakeSnapshot())
    deferred.join(lambda: deferred.chain.execute(Mine()))
    assert commits(deferred.chain) == before + 1
    deferred.begin_again()
    assert deferred.execute(Revert(taken)) is True


def test_a_snapshot_is_committed_where_the_change_comes_to_nothing(tmp_path: Path) -> None:
    deferred = Deferred(tmp_path)
    before = commits(deferred.chain)
    taken = deferred.execute(TakeSnapshot())
    deferred.join(lambda: None)
    assert commits(deferred.chain) == before + 1
    deferred.begin_again()
    assert deferred.execute(Revert(taken)) is True


def test_who_is_killed_amid_a_change_has_the_snapshot_before_it(tmp_path: Path) -> None:
    deferred = Deferred(tmp_path)
    taken = deferred.execute(TakeSnapshot())
    deferred.commits.left = 0
    with pytest.raises(Killed):
        deferred.join(lambda: deferred.chain.execute(Mine()))
    deferred.begin_again()
    assert deferred.execute(Revert(taken)) is True


def test_a_snapshot_that_is_put_off_never_has_the_id_of_one_that_was_taken_at_once(
    tmp_path: Path,
) -> None:
    """On a busy machine some snapshots are taken at once and others are put off."""
    deferred = Deferred(tmp_path)
    ids = [deferred.chain.execute(TakeSnapshot())]
    ids += [deferred.execute(TakeSnapshot(), as_request=True) for _ in range(2)]
    deferred.settle()
    ids += [deferred.chain.execute(TakeSnapshot()), deferred.execute(TakeSnapshot())]
    assert ids == [0, 1, 2, 3, 4]
    assert all(deferred.execute(Revert(each)) for each in reversed(ids))


def test_what_was_never_seen_is_never_carried_out(tmp_path: Path) -> None:
    deferred = Deferred(tmp_path)
    before = commits(deferred.chain)
    taken = deferred.execute(TakeSnapshot())
    deferred.execute(AddBalance(PEOPLE[0], b"\5".rjust(32, b"\0")))
    assert deferred.execute(Revert(taken)) is True
    assert deferred.execute(Revert(taken)) is False, "it is used up"
    deferred.settle()
    assert commits(deferred.chain) == before
    assert deferred.execute(TakeSnapshot()) == taken + 1, "no id is given twice"


words = st.binary(min_size=32, max_size=32)


@given(
    st.one_of(
        st.builds(SetAccount, st.binary(min_size=20, max_size=20), words),
        st.builds(
            lambda who, slot, word: SetAccount(who, storage={slot: word}),
            st.binary(min_size=20, max_size=20),
            words,
            words,
        ),
        st.just(TakeSnapshot()),
        st.builds(Revert, st.integers(0, 2**64 - 1)),
    ),
    st.integers(0, 2**63),
)
def test_the_engine_writes_commands_as_they_are_written_here(
    command: AnyCommand, number: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        deferred = Deferred(Path(folder))
        queue = deferred.changes.queue
        ids = [command.id] if isinstance(command, Revert) else []
        queue.open(3, commands=1, accounts=True, snapshots=1, next_snapshot=number, waiting=ids)
        assert deferred.ask(command) is not NOT_PUT_OFF
        (taken,), _ = queue.take()
        result = number if isinstance(command, TakeSnapshot) else None
        assert taken == msgspec.msgpack.encode(JournaledCommand(command, result))  # type: ignore[arg-type]
        written = CommandJournal(deferred.file).read()
        assert written == (3, [JournaledCommand(command, result)])  # type: ignore[arg-type]


def test_the_engine_takes_commands_only_while_one_waits(tmp_path: Path) -> None:
    deferred = Deferred(tmp_path)
    five = SetAccount(PEOPLE[0], b"\5".rjust(32, b"\0"))
    assert deferred.ask(five) is NOT_PUT_OFF, "nobody would carry it out"
    deferred.execute(TakeSnapshot())
    assert deferred.ask(five) is None
    assert deferred.changes.count == 2
    deferred.settle()
    assert deferred.chain.pending_balance(PEOPLE[0]) == 5
    assert deferred.ask(five) is NOT_PUT_OFF


def test_the_engine_takes_no_more_commands_than_are_carried_out_together(tmp_path: Path) -> None:
    deferred = Deferred(tmp_path)
    deferred.execute(TakeSnapshot())
    add = SetAccount(PEOPLE[0], b"\5".rjust(32, b"\0"))
    taken = sum(deferred.ask(add) is not NOT_PUT_OFF for _ in range(MOST_COMMANDS + 5))
    assert taken == MOST_COMMANDS - 1


def test_the_engine_takes_no_more_snapshots_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferring, "MOST", 3)
    deferred = Deferred(tmp_path)
    for _ in range(2):
        deferred.execute(TakeSnapshot())
    assert deferred.ask(TakeSnapshot()) is not NOT_PUT_OFF
    assert deferred.ask(TakeSnapshot()) is NOT_PUT_OFF, "there is room for no more"


def test_who_prints_requests_hears_of_those_that_the_engine_has_taken(tmp_path: Path) -> None:
    called: list[tuple[str, int]] = []
    deferred = Deferred(tmp_path)
    journal = CommandJournal(deferred.file)
    deferred.changes = DeferredChanges(
        deferred.chain.sequencer, journal, called=lambda name, times: called.append((name, times))
    )
    deferred.execute(TakeSnapshot())
    for _ in range(2):
        deferred.ask(SetAccount(PEOPLE[0], b"\5".rjust(32, b"\0")))
    deferred.ask(TakeSnapshot())
    deferred.settle()
    assert called == [("anvil_setBalance", 2), ("evm_snapshot", 1)]


def test_what_may_be_refused_or_takes_long_is_not_put_off(tmp_path: Path) -> None:
    changes = Deferred(tmp_path).changes
    for command in (
        SetAccount(PEOPLE[0], nonce=1),
        Mine(),
        SetAccount(PEOPLE[0], code=bytes(10**6)),
    ):
        assert changes.put_off(command) is NOT_PUT_OFF
    assert not changes.count


def test_a_batch_that_is_carried_out_is_not_again(tmp_path: Path) -> None:
    deferred = Deferred(tmp_path)
    add = AddBalance(PEOPLE[0], b"\5".rjust(32, b"\0"))
    for _ in range(3):
        deferred.execute(add)
    deferred.settle()
    deferred.begin_again()
    assert deferred.chain.pending_balance(PEOPLE[0]) == 15
    deferred.execute(add)  # over the first of three records
    deferred.begin_again()
    assert deferred.chain.pending_balance(PEOPLE[0]) == 20


def test_a_broken_record_is_the_end_of_the_journal(tmp_path: Path) -> None:
    file = tmp_path / "commands"
    journal, recorded = CommandJournal(file), JournaledCommand(TakeSnapshot(), 7)
    for _ in range(3):
        journal.add(5, recorded)
    whole = file.read_bytes()
    for end in range(len(whole) + 1):
        file.write_bytes(whole[:end])
        assert len(journal.read().commands) == end // (len(whole) // 3)
    journal.close()


class NothingHere:
    """Does nothing at once."""

    def submit_now(self, transaction: Transaction, *, may_replace: bool) -> bool:  # noqa: ARG002
        return False

    def execute_now(self, command: AnyCommand) -> Any:  # noqa: ANN401, ARG002, its own
        return NOT_DONE


@pytest.fixture
def loop_deferral(tmp_path: Path) -> Iterator[tuple[Deferred, LoopDeferral, list[object]]]:
    deferred, heard = Deferred(tmp_path), list[object]()
    made = LoopDeferral(
        lambda: deferred.changes, lambda: True, heard.append, heard.append, NothingHere()
    )
    yield deferred, made, heard
    deferred.changes.close()


def put_off(deferral: LoopDeferral, command: AnyCommand) -> Any:  # noqa: ANN401, its own
    deferral.may_put_off = True
    return deferral.put_off(command)


def test_what_waits_is_carried_out_soon_and_who_watches_hears(
    loop_deferral: tuple[Deferred, LoopDeferral, list[object]],
) -> None:
    deferred, deferral, heard = loop_deferral
    add = AddBalance(PEOPLE[0], b"\5".rjust(32, b"\0"))

    async def run() -> None:
        rested = asyncio.Event()
        waits: list[bool] = []
        deferral.watch(waits.append)
        deferral.watch(lambda is_waiting: None if is_waiting else rested.set())
        assert deferral.put_off(add) is NOT_PUT_OFF, "something before it is not done"
        assert put_off(deferral, add) is None
        assert put_off(deferral, add) is None
        assert waits == [True]
        assert not heard
        await asyncio.wait_for(rested.wait(), PATIENCE)

    asyncio.run(run())
    assert heard == [False]
    assert deferred.chain.pending_balance(PEOPLE[0]) == 10


def test_what_waits_is_carried_out_in_a_pause_and_not_while_more_comes(
    loop_deferral: tuple[Deferred, LoopDeferral, list[object]],
) -> None:
    deferred, deferral, heard = loop_deferral
    add = AddBalance(PEOPLE[0], b"\5".rjust(32, b"\0"))

    async def run() -> None:
        put_off(deferral, add)
        put_off(deferral, add)
        deferral._settle_late()
        assert not heard, "one has come since the timer was set"
        deferral._settle_late()
        assert heard == [False]
        put_off(deferral, add)
        put_off(deferral, add)
        deferral._until = 0.0
        deferral._settle_late()
        assert heard == [False, False], "they have waited for long enough"

    asyncio.run(run())
    assert deferred.chain.pending_balance(PEOPLE[0]) == 20


def test_many_do_not_wait(loop_deferral: tuple[Deferred, LoopDeferral, list[object]]) -> None:
    deferred, deferral, heard = loop_deferral

    async def run() -> None:
        for _ in range(MOST_COMMANDS):
            put_off(deferral, AddBalance(PEOPLE[0], b"\1".rjust(32, b"\0")))

    asyncio.run(run())
    assert heard == [False]
    assert deferred.chain.pending_balance(PEOPLE[0]) == MOST_COMMANDS


def test_a_commit_that_fails_is_told(
    loop_deferral: tuple[Deferred, LoopDeferral, list[object]],
) -> None:
    deferred, deferral, heard = loop_deferral

    async def run() -> None:
        put_off(deferral, AddBalance(PEOPLE[0], b"\1".rjust(32, b"\0")))
        deferred.commits.left = 0
        with pytest.raises(Killed):
            deferral.settle()

    asyncio.run(run())
    assert isinstance(heard[0], Killed)


def test_a_method_that_is_put_off_is_put_off_by_all_its_names() -> None:
    sequencing = Sequencing(commands=InProcess(None))  # type: ignore[arg-type]
    families = make_families(Options(), scheduler(1), sequencing)
    names = [set(method.names) for family in families for method in family.methods]
    assert set().union(*(each for each in names if each & PUT_OFF)) == PUT_OFF
    assert set(CommandPath.NAMES) <= PUT_OFF, "those that the engine takes by itself"
