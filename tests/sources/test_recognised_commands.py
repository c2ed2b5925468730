"""Commands that the engine takes from the bytes of requests are those that methods would give."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from foreblock._engine import CommandPath, CommandQueue, Store
from foreblock.bus.commands import AnyCommand, Revert, TakeSnapshot
from foreblock.bus.deferral import NOT_DONE
from foreblock.errors import InvalidParams
from foreblock.ledger.reading.fast_path import FastPathBounds, make_fast_path
from foreblock.methods.dev.branches import BranchMethods
from foreblock.methods.dev.cheats import CheatMethods
from foreblock.sources.command_journal import decode_commands
from foreblock.types import Transaction

NEXT = 7  # the id of the next snapshot; all before it wait


class Heard:
    """Takes commands, and carries out none."""

    def __init__(self) -> None:
        self.commands: list[AnyCommand] = []

    async def submit_next(self, transaction: Transaction) -> None:
        raise AssertionError(transaction)

    def submit_next_now(self, transaction: Transaction) -> bool:
        raise AssertionError(transaction)

    async def execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        raise AssertionError(command)

    def execute_now(self, command: AnyCommand) -> Any:  # noqa: ANN401, ARG002, its own
        return NOT_DONE

    def put_off(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        self.commands.append(command)
        if isinstance(command, TakeSnapshot):
            return NEXT
        return True if isinstance(command, Revert) else None


def long_way(method: str, params: bytes) -> tuple[AnyCommand, object] | None:
    """The command of a request and its result; none where it is refused."""
    heard = Heard()
    cheats, branches = CheatMethods(heard), BranchMethods(heard, None)  # type: ignore[arg-type]
    run = {
        "setBalance": cheats.set_balance,
        "setStorageAt": cheats.set_storage_at,
        "snapshot": branches.snapshot,
        "revert": branches.revert,
    }[method.partition("_")[2]]
    try:
        result = run(None, Raw(params))  # type: ignore[arg-type]
    except InvalidParams:
        return None
    assert isinstance(result, bytes)
    (command,) = heard.commands
    return command, msgspec.json.decode(result)


@pytest.fixture(scope="module")
def queue_and_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, CommandPath]]:
    folder: Path = tmp_path_factory.mktemp("commands")
    store = Store(str(folder / "store"), write=True)
    queue = CommandQueue(folder / "commands")
    bounds = FastPathBounds(batch_items=1, batch_bytes=1, call_gas=0, call_us=0, step_us=0)
    rows = dict.fromkeys(CommandPath.NAMES, 0)
    yield queue, CommandPath(make_fast_path(store, bounds), queue, rows)
    store.close()


digits = st.text("0123456789abcdefABCDEF", max_size=70)
numbers = st.builds(
    str.__add__, st.sampled_from(["0x", "0x", "0x", "0X", "", "0x0", "0x00", "-0x"]), digits
)
addresses = st.one_of(
    st.binary(min_size=20, max_size=20).map(lambda each: f"0x{each.hex()}"),
    st.binary(min_size=20, max_size=20).map(lambda each: f"0X{each.hex().upper()}"),
    numbers,
)
words = st.one_of(st.binary(min_size=32, max_size=32).map(lambda each: f"0x{each.hex()}"), numbers)
ids = st.integers(0, NEXT).map(hex)
anything = st.one_of(addresses, words, ids, st.integers(), st.none(), st.text(max_size=5))
requests = st.one_of(
    st.tuples(st.sampled_from(CommandPath.NAMES[:2]), st.tuples(addresses, numbers | words)),
    st.tuples(st.sampled_from(CommandPath.NAMES[2:4]), st.tuples(addresses, words, words)),
    st.tuples(st.sampled_from(CommandPath.NAMES[4:6]), st.just(())),
    st.tuples(st.sampled_from(CommandPath.NAMES[6:]), st.tuples(ids | numbers)),
    st.tuples(st.sampled_from(CommandPath.NAMES), st.lists(anything, max_size=4)),
)


@given(asked=requests)
@example(asked=("evm_revert", ("0x00",)))
@example(asked=("anvil_setBalance", ("0x" + "aa" * 20, "0x" + "00" * 32)))
@example(asked=("anvil_setStorageAt", ("0X" + "AA" * 20, "0x" + "0" * 63 + "1", "0x" + "11" * 32)))
def test_what_is_recognised_means_the_same(
    queue_and_path: tuple[CommandQueue, CommandPath], asked: tuple[str, Any]
) -> None:
    queue, path = queue_and_path
    method, params = asked[0], msgspec.json.encode(asked[1])
    queue.open(
        1, commands=1, accounts=True, snapshots=1, next_snapshot=NEXT, waiting=list(range(NEXT))
    )
    body = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":%b}' % (method.encode(), params)
    path.cache_head(b"POST", len(body), b"", b"")
    answer = path.answer(b"POST\r\n\r\n" + body, b"")
    taken, _ = queue.take()
    queue.begin()
    if answer is None:
        assert not taken
        return
    (recorded,) = decode_commands(taken)
    result = msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])["result"]
    assert long_way(method, params) == (recorded.command, result)
