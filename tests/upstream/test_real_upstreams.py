"""State fetched from real servers over the published chain: foreblock itself, and geth.

The oracle is the state dump published with the chain. geth 1.17.2 is found in build/peers or on the
PATH; otherwise its tests are skipped.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from differential.geth import geth
from foreblock.bench.rpc.peers import find
from foreblock.clock import SystemClock
from foreblock.follow.capabilities import Capabilities
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.fetcher import Fetcher, FetchOptions
from foreblock.follow.requests import BlockAt, BlockForm
from foreblock.follow.state_fetcher import by_history
from foreblock.follow.state_plan import FIRST_SLOTS, RequestLimits
from foreblock.follow.state_upstream import StateUpstream
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.rules.execution import HISTORY_STORAGE, HISTORY_WINDOW
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.service.running import serving
from foreblock.types import keccak256
from foreblock.upstream.budget import Purpose, UnitBudget
from foreblock.upstream.rpc_client import Endpoint
from support.each_case import each_case
from support.servers.waiting import PATIENCE

RICH = 10_000_000.0
ABSENT = b"\xab" * 20


class Chain(NamedTuple):
    """A server over the published chain."""

    url: str
    head: BlockAt
    state_root: bytes
    accounts: dict[bytes, Any]  # of the published dump


@pytest.fixture(scope="module", params=["foreblock", "geth"])
def chain(
    request: pytest.FixtureRequest, conformance: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Chain]:
    folder = tmp_path_factory.mktemp(request.param)
    with ExitStack() as stack:
        if request.param == "geth":
            program = find("geth", Path(__file__).resolve().parents[2] / "build" / "peers")
            if program is None:
                pytest.skip("geth is not installed; bench/peers.sh installs it")
            url = stack.enter_context(geth(str(program), conformance, folder))
        else:
            genesis, blocks = conformance / "genesis.json", conformance / "chain.rlp"
            import_files(genesis, blocks, folder / "store", None, lambda _: None)
            url = stack.enter_context(serving(folder / "store", ["--workers=1"])).url
        with Endpoint(url) as endpoint:
            latest = endpoint.request("eth_getBlockByNumber", ["latest", False])
        assert isinstance(latest, dict)
        dump = json.loads((conformance / "headstate.json").read_text("utf-8"))["accounts"]
        yield Chain(
            url,
            BlockAt(int(latest["number"], 16), bytes.fromhex(latest["hash"][2:])),
            bytes.fromhex(latest["stateRoot"][2:]),
            {bytes.fromhex(each[2:]): account for each, account in dump.items()},
        )


def everything(chain: Chain) -> StateKeys:
    """All keys of the dump, and some missing ones."""
    slots = {
        address: frozenset(int(key, 16) for key in account.get("storage", {})) | {12345}
        for address, account in chain.accounts.items()
    }
    codes = {address for address, account in chain.accounts.items() if account.get("code")}
    return StateKeys(
        frozenset(chain.accounts) | {ABSENT},
        {**slots, ABSENT: frozenset({1})},
        codes_of=frozenset(codes),
        blocks=frozenset({1, 20, chain.head.number}),
    )


def check(chain: Chain, found: FetchResult) -> None:
    """Compare the found values with the dump."""
    assert not found.missing(everything(chain))
    for address, published in chain.accounts.items():
        account = found.accounts[address]
        assert account.balance == int(published["balance"])
        assert account.nonce == published["nonce"]
        assert account.code_hash.hex() == published["codeHash"][2:]
        if account.storage_root is not None:
            assert account.storage_root.hex() == published["root"][2:]
        stored = {int(k, 16): int(v, 16) for k, v in published.get("storage", {}).items()}
        given = {slot: word for slot, word in found.slots[address].items() if word}
        assert given == stored
        if published.get("code"):
            assert found.codes[account.code_hash].hex() == published["code"][2:]
    assert found.accounts[ABSENT].is_empty
    assert found.slots[ABSENT] == {1: 0} | dict.fromkeys(
        FIRST_SLOTS & found.slots[ABSENT].keys(), 0
    )


def fetch(
    chain: Chain, options: FetchOptions, limits: RequestLimits | None = None
) -> tuple[FetchResult, StateUpstream]:
    async def run() -> tuple[FetchResult, StateUpstream]:
        upstream = StateUpstream(chain.url, SystemClock(), UnitBudget(RICH))
        fetcher = Fetcher([upstream], SystemClock(), options)
        try:
            await upstream.probe()
            upstream.limits = limits or upstream.limits
            upstream.requests = 0
            wanted = everything(chain)
            found = await fetcher.fetch(wanted, (chain.head,), Purpose.CLIENT, PATIENCE)
            return found, upstream
        finally:
            fetcher.close()

    return asyncio.run(run())


def test_what_it_can_do_is_found_out(chain: Chain) -> None:
    async def run() -> Capabilities:
        upstream = StateUpstream(chain.url, SystemClock(), UnitBudget(RICH))
        try:
            return await upstream.probe(whole=True)
        finally:
            upstream.close()

    found = asyncio.run(run())
    assert found.latest == chain.head
    assert found.overrides
    assert found.storage_values
    assert found.forms[0] is BlockForm.CANONICAL
    assert BlockForm.NUMBER in found.forms
    assert found.proof_depth == 16, "the chain has 54 blocks"
    assert found.batch == 100
    assert found.client


def test_proofs_begin_at_the_root_of_the_state(chain: Chain) -> None:
    found, _ = fetch(chain, FetchOptions(proven=True, first_slots=False))
    check(chain, found)
    assert {keccak256(each.nodes[0]) for some in found.proofs.values() for each in some} == {
        chain.state_root
    }
    empty = keccak256(b"\x80")
    for proof in (each for some in found.proofs.values() for each in some):
        root = proof.account.storage_root
        for slot in proof.slots:
            assert root == (keccak256(slot.nodes[0]) if slot.nodes else empty)


LIMITS = {
    "as probed": None,
    "calls": RequestLimits(proofs=False, values=False, batch=50),
    "small calls": RequestLimits(proofs=False, values=False, call_slots=7),
    "values": RequestLimits(proofs=False, calls=False, values_slots=20),
    "points": RequestLimits(proofs=False, calls=False, values=False, batch=100),
    "by number": RequestLimits(form=BlockForm.NUMBER, batch=10),
    "one by one": RequestLimits(calls=False, values=False, proof_slots=3),
}


@each_case("name", LIMITS)
def test_every_way_gives_the_same_state(chain: Chain, name: str) -> None:
    found, upstream = fetch(chain, FetchOptions(proven=False, first_slots=False), LIMITS[name])
    check(chain, found)
    assert not upstream.refusals.keys() - {"unreachable"}  # too slow, on a busy machine


def test_slots_of_all_contracts_come_in_one_request(chain: Chain) -> None:
    async def run() -> tuple[FetchResult, int]:
        upstream = StateUpstream(chain.url, SystemClock(), UnitBudget(RICH))
        fetcher = Fetcher([upstream], SystemClock(), FetchOptions(proven=False))
        try:
            await upstream.probe()
            before = upstream.requests
            slots = {
                address: keys
                for address, keys in everything(chain).slots.items()
                if int.from_bytes(address) > 1 << 16
            }
            wanted = StateKeys(slots=slots)
            found = await fetcher.fetch(wanted, (chain.head,), Purpose.CLIENT, PATIENCE)
            return found, upstream.requests - before
        finally:
            fetcher.close()

    found, requests = asyncio.run(run())
    assert requests == 1
    assert sum(map(len, found.slots.values())) > 200


def test_an_old_block_and_one_that_is_not_there(chain: Chain) -> None:
    """A block that the server does not know is left to the next one."""

    async def run() -> FetchResult:
        upstream = StateUpstream(chain.url, SystemClock(), UnitBudget(RICH))
        fetcher = Fetcher([upstream], SystemClock(), FetchOptions(proven=False))
        try:
            places = (BlockAt(10_000, b"\xee" * 32), chain.head)
            wanted = StateKeys(frozenset(list(chain.accounts)[:3]))
            return await fetcher.fetch(wanted, places, Purpose.CLIENT, PATIENCE)
        finally:
            fetcher.close()

    found = asyncio.run(run())
    for address, account in found.accounts.items():
        assert account.balance == int(chain.accounts[address]["balance"])
    assert len(found.accounts) == 3


def test_block_hashes_come_from_the_history_contract(chain: Chain) -> None:
    """The last forks of the published chain have it; its slots are the hashes of headers."""

    async def run() -> tuple[FetchResult, FetchResult]:
        upstream = StateUpstream(chain.url, SystemClock(), UnitBudget(RICH))
        fetcher = Fetcher([upstream], SystemClock(), FetchOptions(proven=True))
        try:
            head = chain.head.number
            wanted = StateKeys(blocks=frozenset({head - 3, head - 2, head - 1}))
            asked = by_history(wanted, head)
            assert asked.blocks == frozenset()
            slots = await fetcher.fetch(asked, (chain.head,), Purpose.CLIENT, PATIENCE)
            headers = await fetcher.fetch(wanted, (chain.head,), Purpose.CLIENT, PATIENCE)
            return slots, headers
        finally:
            fetcher.close()

    slots, headers = asyncio.run(run())
    assert len(headers.headers) == 3
    for number, header in headers.headers.items():
        kept = slots.slots[HISTORY_STORAGE][number % HISTORY_WINDOW]
        assert kept.to_bytes(32) == header.hash
