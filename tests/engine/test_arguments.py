"""Any arguments at the engine interface give a result or a documented exception.

Every class and method of the module is called with values of any type and size. A panic of the
engine would appear as pyo3's PanicException, which no test expects; an abort would end the test
run.
"""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreblock import _engine
from foreblock._engine import (
    Account,
    Allowance,
    Batch,
    BlockExecution,
    BlockLogs,
    BlockTemplate,
    BlockTips,
    Body,
    Changes,
    Env,
    FastPath,
    FetchedState,
    Header,
    LogFilter,
    LogRow,
    LogSearch,
    Message,
    Meter,
    MissingKeys,
    Overlay,
    Overrides,
    Parts,
    PlainCalls,
    PlainSimulation,
    Pool,
    Precompiles,
    Proof,
    Recording,
    SealedBody,
    SimulationText,
    State,
    StateImport,
    StateTrie,
    Store,
    StoreCheck,
    StoredBlock,
    StoredItems,
    Tracer,
    View,
    Witness,
    create_access_list,
    decode_transaction,
    log_section,
    log_terms,
    merge_log_sections,
    read_call,
    read_parts,
    read_simulation,
    touched_row,
    touched_terms,
    trace_call,
    trace_transactions,
)
from foreblock.errors import ForeblockError
from support.each_case import each_case
from support.payloads.params import overrides, plain_calls
from support.payloads.small_store import ALICE, CONTRACT, append, env, message, with_code

HEADER = Header(
    parent_hash=bytes(32), beneficiary=bytes(20), state_root=bytes(32), number=1, gas_limit=1,
    timestamp=1,
)  # fmt: skip

ITEMS = bytes.fromhex("00000002 00000001 c0 00000000")

DEPOSIT = decode_transaction(
    bytes.fromhex(
        "7ef856a0c3ecdc70c81521aae81240518d3547f601bb33ec07b909e83544b2fe093c78bd940000000000000000"
        "00000000000000000000000094f39fd6e51aad88f6f4ce6ab8827279cfffb922668080830f42408083abcdef"
    )
)


class Objects:
    """One object of each class, in a store with a block, a partial block and some rows."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.nowhere = os.open(os.devnull, os.O_WRONLY)
        self.store = Store(folder + "/store", write=True, map_size=1 << 26)
        append(self.store, lambda overlay: overlay.set(CONTRACT, nonce=1, state={1: 1}))
        append(self.store, lambda overlay: overlay.set(ALICE, balance=10**18))
        batch = self.store.batch()
        overlay = Overlay.empty()
        overlay.set(ALICE, nonce=5)
        self.changes = overlay.take(batch.draw())
        batch.extend(2, 0, bytes(32), self.changes, on_block=1)
        batch.put(b"row", b"value")
        self.store.commit(batch)
        self.view = self.store.view()
        self.state = self.view.state(1)
        self.trie = self.store.trie()
        self.trie.apply(self.changes)
        self.nodes = self.trie.take()
        self.env = env()
        self.optimism = env("optimism:Jovian")
        self.outcome = with_code("").call(env(), message())

    def all(self) -> dict[str, object]:
        return {
            "changes": self.changes,
            "nodes": self.nodes,
            "env": self.env,
            "optimism": self.optimism,
            "outcome": self.outcome,
            "view": self.view,
            "heads": self.view.heads,
            "state": self.state,
            "overlay": self.state.overlay(),
            "empty overlay": Overlay.empty(),
            "batch": self.store.batch(),
            "deposit": DEPOSIT,
            "tracer": Tracer("calls", with_logs=True),
            "account": Account(balance=1),
            "precompiles": Precompiles("ethereum:Prague", [], []),
            "allowance": Allowance(time_us=10**6, gas=10**6, touched=100),
            "message": message(),
            "creation": Message(sender=ALICE, gas=2**64 - 1, data=b"\x60\x00\xf3"),
            "store": self.store,
            "header": HEADER,
            "calls": CALLS,
            "overrides": OVERRIDES,
            "filter": FILTER,
            "stored block": StoredBlock(HEADER, [1], homestead=True),
            "learned": FetchedState(1),
            "misses": MissingKeys([ALICE]),
        }


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Objects]:
    objects = Objects(str(tmp_path_factory.mktemp("arguments")))
    yield objects
    objects.view.close()
    objects.store.close()
    os.close(objects.nowhere)


NUMBERS = st.one_of(
    st.integers(-2, 5),
    st.sampled_from([2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**128, 2**256 - 1]),
    st.integers(),
)
BYTES = st.one_of(
    st.binary(max_size=3),
    st.sampled_from([ALICE, CONTRACT, bytes(20), bytes(19), bytes(32), b"row", b"k" * 600]),
    st.binary(min_size=20, max_size=20),
    st.binary(min_size=32, max_size=32),
)
TEXTS = st.one_of(
    st.text(max_size=5),
    st.sampled_from(["ethereum:Prague", "optimism:Karst", "ethereum:Frontier", "\ud800", "a\0b"]),
)
PLAIN = st.one_of(
    st.none(), st.booleans(), NUMBERS, BYTES, TEXTS, st.floats(), st.just(bytearray(20))
)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.one_of(NUMBERS, BYTES, TEXTS)
    return st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
    )


@dataclass(frozen=True)
class Named:
    """An object of the engine, resolved when the call is made."""

    name: str


def named(*names: str) -> st.SearchStrategy[Any]:
    return st.sampled_from([Named(name) for name in names])


ENGINE = named(
    *("changes", "nodes", "env", "optimism", "outcome", "executed", "view", "heads", "state"),
    *("overlay", "empty overlay", "batch", "deposit", "account", "precompiles", "message"),
    *("creation", "store", "header", "calls", "allowance", "filter", "learned", "misses"),
    "stored block",
)
ANYTHING = st.recursive(st.one_of(PLAIN, ENGINE), nested, max_leaves=6)
ADDRESSES = st.sampled_from([ALICE, CONTRACT, bytes(20), bytes(19) + b"\x04"])
WORDS = st.binary(min_size=32, max_size=32)
SLOTS = st.dictionaries(NUMBERS, NUMBERS, max_size=3)
ROWS = st.dictionaries(BYTES, BYTES, max_size=3)

# Plausible values of parameters by name; all others are numbers.
PLAUSIBLE: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["address", "sender", "to", "coinbase", "after"], ADDRESSES),
    **dict.fromkeys(
        ["hash", "parent_hash", "prevrandao", "post_state", "code_hash", "root"], WORDS
    ),
    **dict.fromkeys(
        ["data", "key", "value", "prefix", "note", "item", "code", "body", "command"], BYTES
    ),
    **dict.fromkeys(["rules", "reason"], TEXTS),
    "state": st.one_of(SLOTS, named("state")),
    "state_diff": SLOTS,
    "rows": ROWS,
    "env": named("env", "optimism"),
    "message": named("message", "creation"),
    "overlay": named("overlay", "empty overlay"),
    "changes": named("changes"),
    "later": named("changes"),
    "batch": named("batch"),
    "nodes": st.one_of(named("nodes"), st.tuples(NUMBERS, named("nodes"))),
    "precompiles": named("precompiles"),
    "allowance": named("allowance"),
    "transaction": named("deposit"),
    "outcome": named("outcome"),
    "contract": ADDRESSES,
    "transactions": st.lists(named("deposit"), max_size=3),
    "accounts": st.lists(st.tuples(ADDRESSES, named("account")), max_size=3),
    **dict.fromkeys(["partials", "waiting"], st.lists(NUMBERS, max_size=3)),
    "overridden": st.lists(ADDRESSES, max_size=3),
    "moves": st.lists(st.tuples(ADDRESSES, ADDRESSES), max_size=3),
    "access_list": st.lists(st.tuples(ADDRESSES, st.lists(WORDS, max_size=2)), max_size=2),
    "blob_hashes": st.lists(WORDS, max_size=2),
    "authorization_list": st.just([]),
    "header": named("header"),
    "calls": st.one_of(named("calls"), st.sampled_from([b"[]", b"[{}]", b"{}"])),
    "overrides": st.sampled_from([b"{}", b"null", b'{"0x%b":{"nonce":"0x1"}}' % (b"00" * 20)]),
    "told": st.lists(st.tuples(ADDRESSES, BYTES), max_size=2),
    "slots": SLOTS,
    "failures": st.lists(st.tuples(BYTES, BYTES), max_size=2),
    "view": named("view"),
    "filter": named("filter"),
    "block": named("stored block"),
    "learned": named("learned"),
    "other": named("misses"),
    "account": named("account"),
    "texts": st.lists(BYTES, max_size=3),
    "account_proof": st.lists(BYTES, max_size=3),
    "values": SLOTS,
    "codes": st.dictionaries(WORDS, BYTES, max_size=2),
    "addresses": st.lists(ADDRESSES, max_size=3),
    "topics": st.lists(st.lists(WORDS, max_size=3), max_size=4),
    "bloom": st.sampled_from([bytes(256), b"\xff" * 256, bytes(255)]),
    "kind": st.sampled_from(["structLogs", "calls", "prestate", "parity", "replay", "touched"]),
    **dict.fromkeys(["senders", "receivers"], st.lists(ADDRESSES, max_size=2)),
    "runs": st.lists(st.tuples(st.tuples(BYTES, NUMBERS), st.tuples(NUMBERS, NUMBERS)), max_size=3),
    "portions": st.lists(st.tuples(BYTES, BYTES), max_size=3),
    "end": BYTES,
    "put": st.lists(st.tuples(BYTES, BYTES), max_size=3),
    "deleted": st.lists(BYTES, max_size=3),
    "receipts": st.lists(BYTES, max_size=3),
    "blocks": st.lists(BYTES, max_size=3),
    "sources": st.lists(st.tuples(BYTES, NUMBERS), max_size=3),
    "start": st.one_of(NUMBERS, st.just(bytes(10))),
}


def value(name: str) -> st.SearchStrategy[Any]:
    plausible = PLAUSIBLE.get(name, NUMBERS)
    return st.one_of(plausible, plausible, plausible, ANYTHING)


def found(objects: dict[str, object], value: Any) -> Any:  # noqa: ANN401 - of any type
    match value:
        case Named(name):
            return objects[name]
        case list():
            return [found(objects, each) for each in value]
        case tuple():
            return tuple(found(objects, each) for each in value)
        case dict():
            return {key: found(objects, each) for key, each in value.items()}
        case _:
            return value


def arguments(callee: Callable[..., object]) -> st.SearchStrategy[tuple[list[Any], dict[str, Any]]]:
    """Values for the parameters of a call: the required ones, and some of the others."""
    parameters = list(inspect.signature(callee).parameters.values())
    keywords = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
    positional = [each for each in parameters if each not in keywords]
    needed = {each.name: value(each.name) for each in keywords if each.default is each.empty}
    others = {each.name: value(each.name) for each in keywords if each.name not in needed}
    return st.tuples(
        st.tuples(*(value(each.name) for each in positional)).map(list),
        st.fixed_dictionaries(needed, optional=others),
    )


def methods(kind: type) -> list[str]:
    """The methods of a class except those that close it."""
    public = [name for name in vars(kind) if not name.startswith("_") and name != "close"]
    return [name for name in public if callable(getattr(kind, name))]


CALLS = plain_calls((ALICE, CONTRACT, 0, b"", None))
FILTER = LogFilter([ALICE], [[], [bytes(32)]])
OVERRIDES = overrides({ALICE: {"balance": 1, "stateDiff": {1: 2}}})


def made(objects: Objects, kind: type) -> object:
    """The object whose method is called; a new one if a call consumes it."""
    makers: dict[type, Callable[[], object]] = {
        Store: lambda: objects.store,
        View: lambda: objects.view,
        State: lambda: objects.state,
        Batch: objects.store.batch,
        Overlay: objects.state.overlay,
        StateTrie: objects.store.trie,
        BlockExecution: lambda: BlockExecution(objects.state.overlay(), objects.env),
        Body: lambda: Body(objects.state.overlay(), objects.env),
        SealedBody: lambda: sealed(objects),
        PlainSimulation: lambda: plain_simulation(objects),
        SimulationText: lambda: SimulationText([sealed(objects)], "preconf"),
        Parts: lambda: read_parts(b'[1,{"a":2},"\\u00e9",[]]'),
        Overrides: lambda: OVERRIDES,
        PlainCalls: lambda: CALLS,
        Changes: lambda: objects.changes,
        FastPath: lambda: fast_path(objects.store),
        StoredBlock: lambda: StoredBlock(HEADER, [1, 2], homestead=True),
        StoredItems: lambda: StoredItems(ITEMS),
        LogFilter: lambda: FILTER,
        LogSearch: lambda: LogSearch(FILTER, [((b"L", 2**16 - 1), (0, 2**64 - 1))], 0, 2**64 - 1),
        BlockLogs: lambda: BlockLogs(FILTER, [(b"row", b"row")], b""),
        BlockTips: lambda: BlockTips(StoredBlock(HEADER, [], homestead=True), 7),
        Proof: lambda: objects.state.prove(CONTRACT, [1]),
        Meter: lambda: Meter(
            memoryview(bytearray(8 * 40)).cast("d"), bounds=[0.1, 1.0], outcomes=5, traffic=0
        ),
        FetchedState: lambda: FetchedState(1),
        Witness: lambda: Witness(HEADER, [b"\x80", bytes(40)]),
        Recording: objects.state.record,
        StateImport: lambda: StateImport(
            objects.store, 1, bytes(32), objects.folder + "/runs", memory=1 << 20
        ),
        MissingKeys: lambda: MissingKeys([ALICE], {ALICE: [1]}, {bytes(32): ALICE}, [1]),
        StoreCheck: lambda: StoreCheck(objects.view, 0, bytes(64)),
    }
    return makers[kind]()


def fast_path(store: Store) -> FastPath:
    return FastPath(
        store, batch_items=9, batch_bytes=999, batch_us=9, call_gas=9, call_us=9, step_us=9
    )


def sealed(objects: Objects) -> SealedBody:
    """A block with one successful and one failing call."""
    overlay = objects.state.overlay()
    overlay.set(ALICE, balance=10**18)
    body = Body(overlay, objects.env)
    calls = plain_calls((ALICE, CONTRACT, 0, b"", 100_000), (ALICE, None, 0, b"\xfe", 100_000))
    body.run_plain(calls, 0, 2, 10**6, 10**6)
    return body.seal(HEADER, state_root=bytes(32))


def plain_simulation(objects: Objects) -> PlainSimulation:
    """Two blocks with one call each."""
    template = BlockTemplate(objects.env, HEADER, 2, 1, [(CONTRACT, bytes(32)), (ALICE, None)])
    blocks = [(CALLS, None), (CALLS, OVERRIDES)]
    return PlainSimulation(template, objects.state, blocks, gas=10**6, output=10**3)


KINDS = [
    Store, View, State, Batch, Overlay, StateTrie, BlockExecution, Body, Changes,
    PlainSimulation, Parts, SealedBody, SimulationText, Overrides, PlainCalls, FastPath,
    StoredBlock, StoredItems, BlockTips, Proof, LogFilter, LogSearch, BlockLogs, Meter,
    StoreCheck, FetchedState, MissingKeys, Witness, Recording, StateImport,
]  # fmt: skip
METHODS = [(kind, name) for kind in KINDS for name in methods(kind)]
many = settings(max_examples=max(2, settings().max_examples // 8))  # there are very many methods


def call(callee: Callable[..., object], positional: list[Any], keywords: dict[str, Any]) -> None:
    with suppress(ForeblockError, TypeError):
        callee(*positional, **keywords)


def inside(objects: Objects, path: object) -> object:
    """Move the path into a folder of the test."""
    return str(Path(objects.folder) / "other") + path if isinstance(path, str) else path


@each_case(("kind", "name"), METHODS)
@many
@given(data=st.data())
def test_methods_raise_what_is_documented(
    objects: Objects, kind: type, name: str, data: st.DataObject
) -> None:
    on = made(objects, kind)
    method = getattr(on, name)
    positional, keywords = data.draw(arguments(method))
    if (kind, name) == (Store, "copy"):  # only into a folder of the test
        positional = [inside(objects, each) for each in positional]
        keywords = {key: inside(objects, each) for key, each in keywords.items()}
    if (kind, name) == (Store, "copy_to"):  # not into a file that the test has open
        positional = [objects.nowhere if isinstance(each, int) else each for each in positional]
    every = objects.all()
    call(method, found(every, positional), found(every, keywords))
    if isinstance(on, Batch):
        call(objects.store.commit, [on], {})


@each_case(
    "kind",
    [
        Account, Allowance, LogRow, Message, Precompiles, Env, BlockExecution, Body, FastPath,
        StoredBlock, StoredItems, BlockTips, read_call, read_simulation,
        Tracer, trace_transactions, trace_call,
        create_access_list, LogFilter, LogSearch, BlockLogs, log_terms, log_section,
        merge_log_sections, touched_row, touched_terms, FetchedState,
        MissingKeys, Witness,
    ],
)  # fmt: skip
@many
@given(data=st.data())
def test_classes_raise_what_is_documented(
    objects: Objects, kind: Callable[..., object], data: st.DataObject
) -> None:
    positional, keywords = data.draw(arguments(kind))
    every = objects.all()
    call(kind, found(every, positional), found(every, keywords))


@many
@given(path=st.one_of(TEXTS, PLAIN), data=st.data())
def test_stores_raise_what_is_documented(
    objects: Objects, path: object, data: st.DataObject
) -> None:
    _, keywords = data.draw(arguments(Store))
    # No lock file for a billion readers.
    place = inside(objects, path)
    if isinstance(keywords.get("max_readers"), int):
        keywords["max_readers"] = min(keywords["max_readers"], 1000)
    opened: list[Store] = []
    untyped: Callable[..., Store] = Store
    call(lambda: opened.append(untyped(place, **keywords)), [], {})
    for store in opened:
        store.close()


@given(data=st.data())
def test_pools_raise_what_is_documented(objects: Objects, data: st.DataObject) -> None:
    _, keywords = data.draw(arguments(Pool))
    if isinstance(keywords["threads"], int) and keywords["threads"] <= 1024:
        keywords["threads"] = min(keywords["threads"], 3)
    every = objects.all()
    call(Pool, [], found(every, keywords))
    pool = Pool(threads=1, capacity=3)
    positional, keywords = data.draw(arguments(pool.submit))
    call(pool.submit, found(every, positional), found(every, keywords))
    assert isinstance(pool.take(), list)


def test_every_class_of_the_stub_is_covered() -> None:
    """A new class of the interface is added here, or to the tests of the codec."""
    of_the_codec = {
        "Authorization", "Block", "Header", "Receipt", "Transaction",
    }  # fmt: skip
    classes = {name for name in dir(_engine) if isinstance(getattr(_engine, name), type)}
    called = {kind.__name__ for kind in KINDS}
    made = {
        "Account", "Allowance", "BlockTemplate", "LogRow", "Message", "Precompiles", "Env", "Pool",
        "Tracer",
    }  # fmt: skip
    only_read = {
        "AccessList", "Heads", "NodeWrites", "Outcome", "Partial", "ProofsNeeded",
        "StateBase", "TraceText",
    }  # fmt: skip
    assert classes == of_the_codec | called | made | only_read
