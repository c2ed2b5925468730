"""A fork as the writer of a dev chain uses it: its store, its known state, and the search for more.

The store begins at the fork block, with the development accounts funded in the state of that block,
as in anvil. On an Ethereum chain without the contracts that blocks call at their end (EIP-7002,
EIP-7251), as some dev chains are, they are added. Everything else is as upstreams have it.
"""

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import structs

from foreblock.bus.messages import BusRequest, CallUpstream, GetState
from foreblock.errors import BadSetting, DifferentGenesis, EndpointError, ForeblockError
from foreblock.follow.learned_state import learn_values, unpack_values
from foreblock.fork.cache import check_sources, known_file, recorded_point
from foreblock.fork.choosing import choose_fork
from foreblock.fork.forked_state import ForkedState
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.rules.execution import CONSOLIDATION_REQUESTS, WITHDRAWAL_REQUESTS
from foreblock.ledger.rules.forks import ETHER, EthereumFork, Rules
from foreblock.ledger.storage.dev_rows import ForkOrigin
from foreblock.ledger.storage.follow_rows import put_trust
from foreblock.ledger.storage.open_store import (
    FIRST_EPOCH,
    Anchor,
    FetchedState,
    Store,
    begin_at,
    is_empty,
    restart_at_anchor,
)
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.primitives import format_data
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.sequencer.predeploys import predeploys
from foreblock.sequencer.rewriter import BlockToReplay
from foreblock.settings import ChainSettings, ForkPoint
from foreblock.settings.networks import Network
from foreblock.sources.network_store import open_followed_store
from foreblock.types import Account, MissingKeys, Transaction, decode_header, decode_transactions

POINT_FILE: Final = "fork.json"  # in the directory of the store
PORTION: Final = 256  # frames of the cache that are stored together


class Fork:
    """A fork of one network; `close` it."""

    def __init__(self, network: Network) -> None:
        """Raises `BadSetting`."""
        assert network.dev is not None, "a fork is a dev chain"
        assert network.fork is not None, "its block was chosen"
        self._network: Final = network
        self._chain: Final = network.dev
        self._point: Final = network.fork
        self.settings: Final = self._chain.forking
        self.header: Final = decode_header(self._point.header)
        self.learned = FetchedState(FIRST_EPOCH, nodes=False)  # another one in later epochs
        self._known: Final = known_file(self.settings, self._point, self.header)
        self.state: Final = ForkedState(self.settings, self._point, self.header, self._known)
        self._answers: Final[set[asyncio.Task[None]]] = set()

    @property
    def origin(self) -> ForkOrigin:
        """Where its state comes from."""
        return ForkOrigin(
            self.state.shown[0] if self.state.shown else self.settings.state,
            self._point.chain_id,
            round(self.settings.retry_backoff * 1_000),
            self._point.attributes,
        )

    @property
    def first_block(self) -> BlockToReplay | None:
        """The block of the other chain that is executed first; None without one."""
        replayed = self._point.replayed
        if replayed is None:
            return None
        header = decode_header(replayed.header)
        return BlockToReplay(header, decode_transactions(replayed.transactions))

    def open_store(self, seen: SeenCommit | None) -> Store:
        """The store of the network; an empty one begins at the fork block."""
        try:
            store = open_followed_store(self._network, seen)
        except BaseException:
            self.close()
            raise
        try:
            with store.view() as view:
                is_new, base = is_empty(view), view.heads.base
            if is_new:
                self._keep_point()
                begin_at(store, Anchor(self.header), self._point.config)
            elif base.is_complete or base.hash != self.header.hash:
                self._complete_restart(store, None if base.is_complete else base.hash)
            self._serve(store)
        except BaseException:
            self.close()
            store.close()
            raise
        return store

    def _complete_restart(self, store: Store, found: bytes | None) -> None:
        """Complete a restart that was interrupted; refuse a store that has another base."""
        kept = kept_point(Path(self._network.data))
        if found is None or kept is None or kept.header != self._point.header:
            shown = "none" if found is None else format_data(found)
            raise DifferentGenesis("fork block", shown, format_data(self.header.hash))
        restart_at_anchor(store, Anchor(self.header))

    def begin(self, writer: LedgerWriter) -> None:
        """Do nothing: the sequencer begins the first block."""

    def restart(self, store: Store) -> None:
        """Restart the chain in a store on this block."""
        self._keep_point()
        restart_at_anchor(store, Anchor(self.header))
        self._serve(store)

    def another(self, url: str, block: str) -> "Fork":
        """A fork of another block of the same chain. Raises `BadSetting`, `EndpointError`."""
        if self.settings.state:
            raise BadSetting("fork_state", "a recording has one block")
        urls = (url,) if url else self.settings.url
        forking = dataclasses.replace(
            self.settings, url=urls, block_number=block, transaction_hash="", record=""
        )
        local_id = json.loads(self._point.config)["chainId"]
        chain = dataclasses.replace(self._chain, forking=forking, chain_id=local_id)
        point = choose_fork(chain, keeps_id=True)
        if point.chain_id != self._point.chain_id:
            why = f"it is of chain {point.chain_id}, not {self._point.chain_id}; start another fork"
            raise BadSetting("fork_url", why)
        if point.config != self._point.config:
            why = f"block {decode_header(point.header).number} has other rules; start another fork"
            raise BadSetting("fork_block_number", why)
        return Fork(structs.replace(self._network, dev=chain, fork=point))

    def use(self, url: str) -> None:
        """Fetch from another endpoint of the chain. Raises `BadSetting`, `EndpointError`."""
        self.state.use(url)

    def _keep_point(self) -> None:
        """Write the file that the next start reads, before the store begins at the block.

        The next start may have other endpoints, which are probed again.
        """
        file = Path(self._network.data) / POINT_FILE
        part = file.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(structs.replace(self._point, abilities=())))
        part.replace(file)

    def _serve(self, store: Store) -> None:
        put_trust(store, "proven" if self._point.proven else "trusted")
        with store.view() as view:
            self.learned = FetchedState(view.heads.base.epoch, nodes=False)
        store.set_fallback_state(self.learned)
        self._learn_known(store)
        self.state.serve(store, self.learned)

    def find(self, missing: MissingKeys, transactions: Sequence[Transaction] = ()) -> None:
        """Make state known that a block misses. Raises `EndpointError`."""
        self.state.find(missing, transactions)

    def answer(self, request: BusRequest) -> None:
        """Reply to a worker some time later; on its loop."""
        task = asyncio.get_running_loop().create_task(self._answer(request))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, request: BusRequest) -> None:
        body, deadline_ns = request.call.body, request.call.deadline_ns
        assert isinstance(body, GetState | CallUpstream), "other calls do not get here"
        try:
            data = await asyncio.wrap_future(self.state.answer(body, deadline_ns))
        except Exception as why:
            request.fail(why)
            if not isinstance(why, EndpointError | ForeblockError):
                raise
            return
        request.finish_in_parts(data)

    def close(self) -> None:
        """End its requests."""
        self.state.close()

    def _learn_known(self, store: Store) -> None:
        """Learn the values that differ from the other chain, then the known values of it."""
        values = unpack_values(self._point.values)
        balance = self._chain.balance * ETHER
        made = dev_accounts(self._chain.mnemonic, self._chain.accounts, self._chain.derivation_path)
        for each in made:
            before = values.accounts.get(each.address)
            found = Account() if before is None else before
            self._put(each.address, found, balance, found.code_hash)
        for contract in {WITHDRAWAL_REQUESTS, CONSOLIDATION_REQUESTS} & values.accounts.keys():
            before = values.accounts[contract]
            found = Account() if before is None else before
            if found.code_hash == Account().code_hash:
                code = predeploys(Rules(EthereumFork.OSAKA))[contract].code
                self._put(contract, found, found.balance, self.learned.put_code(code))
        learn_values(self.learned, values)
        store.learn(self.learned)
        for number, more in enumerate(self._known.values(), start=1):
            learn_values(self.learned, more)
            if number % PORTION == 0:
                store.learn(self.learned)
        store.learn(self.learned)

    def _put(self, address: bytes, account: Account, balance: int, code_hash: bytes) -> None:
        changed = Account(nonce=account.nonce, balance=balance, code_hash=code_hash)
        self.learned.put_account(address, changed)


def opened_fork(network: Network) -> Fork:
    """The fork of a network, on the block that a command has chosen since the start, if any."""
    kept = kept_point(Path(network.data))
    return Fork(network if kept is None else structs.replace(network, fork=kept))


def kept_point(folder: Path) -> ForkPoint | None:
    """The fork block of the chain in a directory; None if there is none."""
    try:
        return msgspec.json.decode((folder / POINT_FILE).read_bytes(), type=ForkPoint)
    except FileNotFoundError:
        return None


def fork_of(chain: ChainSettings, folder: Path, *, keeps_id: bool = False) -> ForkPoint | None:
    """The fork block of a network: that of its directory, or one chosen now; None without a fork.

    Raises `BadSetting`, `EndpointError`.
    """
    settings, kept = chain.forking, kept_point(folder)
    if kept is not None and settings.record:
        raise BadSetting("fork_record", "a chain that continues does not fetch what it knows")
    if kept is not None or not settings.is_on:
        return kept
    check_sources(settings)
    return (
        recorded_point(settings.state) if settings.state else choose_fork(chain, keeps_id=keeps_id)
    )
