"""The state of a mirror that its store does not know: that of the real chain.

A key that the mirror does not know was changed by no real block since the mirror began, since what
a block changes is learned before. So its value is that of any real block since then which the
mirror has, and it is read at the last such block in the store of the real chain; what that does not
know either, it fetches and proves as for its own readers.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from foreblock.bus.messages import BusRequest, CallUpstream, GetState
from foreblock.errors import (
    BadSetting,
    DifferentGenesis,
    EndpointError,
    ForeblockError,
    NewEpoch,
    NotHere,
    NoUpstream,
    StateMissing,
    StoreClosed,
)
from foreblock.follow.learned_state import KnownValues, learn_values, pack_known
from foreblock.follow.worker_state import called_among
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.building.real_index import (
    RealIndex,
    hash_of,
    read_blocks,
    read_real_index,
)
from foreblock.ledger.rules.forks import ETHER
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.dev_rows import ForkOrigin
from foreblock.ledger.storage.follow_rows import TRUST, Trust, read_trust
from foreblock.ledger.storage.mirror_rows import (
    REAL,
    StateKey,
    encode_number,
    read_written,
    real_block_key,
    real_hash,
    written_key,
)
from foreblock.ledger.storage.open_store import (
    FIRST_EPOCH,
    Anchor,
    FetchedState,
    LocalBase,
    Store,
    View,
    begin_at,
    is_empty,
    restart_at_anchor,
    unknown_in,
)
from foreblock.ledger.storage.state_keys import NO_ADDRESS, StateKeys
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.sequencer.attributes import payload_id
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.settings.networks import Network
from foreblock.sources.dev_network import ForkedBase
from foreblock.sources.network_store import open_followed_store
from foreblock.types import Account, Header, MissingKeys, Transaction

MOST_ROUNDS: Final = 4  # in which the real chain may be opened again meanwhile
NO_COMMAND: Final = "a mirror keeps the chain and the endpoints that it was started with"


class RealChain(Protocol):
    """A chain that is followed in this process. Any thread but that of its loop may use it."""

    @property
    def shown(self) -> str:
        """Its first endpoint, without secrets."""

    @property
    def store(self) -> Store:
        """Its store, which may be closed when the chain is opened again."""

    def learn(self, wanted: StateKeys) -> None:
        """Fetch state that its store does not know. Raises `EndpointError`."""

    def answer(self, request: BusRequest) -> None:
        """Answer a request of a worker for the result of an upstream; on its loop."""


class MirroredState:
    """The state of one mirror, and the block that it begins on."""

    def __init__(self, network: Network, real: RealChain) -> None:
        assert network.dev is not None, "a mirror is a dev chain"
        self._network: Final = network
        self._chain: Final = network.dev
        self._real: Final = real
        self._answers: Final[set[asyncio.Task[None]]] = set()
        self.header: Header
        self.learned: FetchedState
        self._store: Store
        self._next: tuple[Anchor, LocalBase]
        self._store_id: bytes  # of the real chain
        self._trust: Trust

    @property
    def origin(self) -> ForkOrigin:
        """Where its state comes from."""
        return ForkOrigin(self._real.shown, self._chain.chain_id, 0)

    @property
    def first_block(self) -> None:
        """None: `begin` takes the first block over."""

    # --- The store ---------------------------------------------------------------------

    def open_store(self, seen: SeenCommit | None) -> Store:
        """The store of the mirror; an empty one begins below the latest real block.

        Raises `ForeblockError`: if the real chain has one block only, it is `NoUpstream`.
        """
        store = open_followed_store(self._network, seen)
        try:
            with store.view() as view:
                is_new, is_mirror = is_empty(view), view.row(REAL) is not None
            if is_new:
                header, config = self._next_base()
                local = self._local_base(FIRST_EPOCH, header, self._funded(header))
                begin_at(store, Anchor(header), config, local)
            else:
                _check_mirror(is_mirror=is_mirror, wanted=self._chain.mirror)
            self._serve(store)
        except BaseException:
            store.close()
            raise
        return store

    def prepare_restart(self, kept: KnownValues) -> None:
        """Read what `restart` needs, with these local values. Raises `EndpointError`."""
        header, _ = self._next_base()
        local = self._local_base(self.learned.epoch + 1, header, kept)
        self._next = Anchor(header), local

    def restart(self, store: Store) -> None:
        """Let the mirror begin again as it was prepared, in one commit."""
        anchor, local = self._next
        restart_at_anchor(store, anchor, local=local)
        self._serve(store)

    def _next_base(self) -> tuple[Header, bytes]:
        """The real block on which a mirror begins now, and the configuration of the chain."""
        with self._real.store.view() as real:
            self._store_id = real.heads.store_id
            self._trust = read_trust(real)
            return _begin_header(real), real.row(rows.CONFIG) or b""

    def _local_base(self, epoch: int, header: Header, kept: KnownValues) -> LocalBase:
        """The values that are local at a block, and what the mirror stores about it.

        Accounts of which only slots are local are needed too.
        """
        learned = FetchedState(epoch, nodes=False)
        learn_values(learned, kept)
        homes = frozenset(kept.slots.keys() - kept.accounts.keys())
        learn_values(learned, self._read(StateKeys(homes), header))
        keys: list[StateKey] = [(address, None) for address in kept.accounts]
        keys += [(address, slot) for address, slots in kept.slots.items() for slot in slots]
        number = encode_number(header.number)
        put = [(written_key(key), number) for key in keys]
        put += [(REAL, self._store_id), (real_block_key(header.number), header.hash)]
        return LocalBase(learned, [*put, (TRUST, self._trust.encode())])

    def _funded(self, header: Header) -> KnownValues:
        """The development accounts with their balance, which is local."""
        chain = self._chain
        made = dev_accounts(chain.mnemonic, chain.accounts, chain.derivation_path)
        found = self._read(StateKeys(frozenset(each.address for each in made)), header).accounts
        funded: dict[bytes, Account | None] = {}
        for address, account in found.items():
            before = Account() if account is None else account
            balance = chain.balance * ETHER
            funded[address] = Account(
                nonce=before.nonce, balance=balance, code_hash=before.code_hash
            )
        return KnownValues(funded, {})

    def begin(self, writer: LedgerWriter) -> None:
        """Begin the first block of the mirror, if it has none, with all of the real one."""
        if writer.open_block() is not None:
            return
        with self._real.store.view() as real, self._store.view() as view:
            if hash_of(real, self.header.number) != self.header.hash:
                raise NoUpstream("the real chain has no more the block that the mirror began on", 1)
            written = dict(read_written(view))
            found = read_blocks(real, writer.latest.number + 1)[0]
            optimism = writer.profile.optimism is not None
            index = read_real_index(real, found, None, optimism=optimism)
        self.know(index)
        block = writer.begin(found.base, payload_id(found.base, self._chain.seed))
        block.take_over(index, lambda key: key in written)
        writer.extend(block)

    def _serve(self, store: Store) -> None:
        with store.view() as view:
            self.learned = FetchedState(view.heads.base.epoch, nodes=False)
            self.header, _ = read_header(view, view.heads.base.number)
        store.set_fallback_state(self.learned)
        self._store = store

    # --- Missing state -----------------------------------------------------------------

    def know(self, index: RealIndex) -> None:
        """Learn the state before a part of a real block of all that it changed."""
        slots = {each.address: each.slots.keys() for each in index.accounts}
        missing = unknown_in(self._store, [each.address for each in index.accounts], slots)
        if missing:
            self.find(missing)

    def find(
        self,
        missing: MissingKeys,
        transactions: Sequence[Transaction] = (),  # noqa: ARG002, as declared
    ) -> None:
        """Make state known that a block misses. Raises `EndpointError`."""
        needed = StateKeys.of(missing)
        if not needed:
            raise NoUpstream("the slots of an account that was deleted here are not kept", 1)
        values = self._read(needed.also(StateKeys(codes_of=called_among(needed))))
        learn_values(self.learned, values)

    def _read(self, wanted: StateKeys, at: Header | None = None) -> KnownValues:
        """These values at a real block, by default one that the mirror has.

        Raises `EndpointError`.
        """
        for _ in range(MOST_ROUNDS):
            try:
                with self._real.store.view() as real:
                    if at is not None and hash_of(real, at.number) != at.hash:
                        raise NoUpstream("the real chain has replaced its last blocks", 1)
                    number = self._common(real) if at is None else at.number
                    found = _read_at(real, number, wanted)
            except (NotHere, StoreClosed) as why:
                raise NoUpstream(f"the real chain: {why}", 1) from None
            if isinstance(found, KnownValues):
                return found
            self._real.learn(found)
        raise NoUpstream("the real chain does not know the state", 1)

    def _common(self, real: View) -> int:
        """The last sealed block of the mirror that the real chain still has."""
        with self._store.view() as view:
            assert view.heads.latest is not None, "a mirror has its first block"
            assert real.heads.latest is not None, "a followed chain has its anchor"
            for number in range(
                min(view.heads.latest[0], real.heads.latest[0]), self.header.number - 1, -1
            ):
                known = self.header.hash if number == self.header.number else None
                if (known or real_hash(view, number)) == hash_of(real, number):
                    return number
        raise NoUpstream("the real chain has replaced the block that the mirror began on", 1)

    # --- Workers -----------------------------------------------------------------------

    def answer(self, request: BusRequest) -> None:
        """Reply to a worker some time later; on its loop."""
        if isinstance(request.call.body, CallUpstream):
            self._real.answer(request)
            return
        task = asyncio.get_running_loop().create_task(self._answer(request))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, request: BusRequest) -> None:
        body = request.call.body
        assert isinstance(body, GetState), "other calls do not get here"
        try:
            data = await asyncio.to_thread(self.values, body)
        except Exception as why:
            request.fail(why)
            if not isinstance(why, EndpointError | ForeblockError):
                raise
            return
        request.finish_in_parts(data)

    def values(self, wanted: GetState) -> bytes:
        """The values of keys, packed, which are stored as well. Raises `EndpointError`."""
        if wanted.epoch != self.learned.epoch:
            raise NewEpoch
        values = self._read(StateKeys.unpack(wanted.keys))
        learn_values(self.learned, values)
        return pack_known(values)

    # --- As a fork ---------------------------------------------------------------------

    def use(self, url: str) -> None:  # noqa: ARG002, as declared
        """Refuse another endpoint."""
        raise BadSetting("mirror", NO_COMMAND)

    def another(self, url: str, block: str) -> ForkedBase:  # noqa: ARG002, as declared
        """Refuse another block."""
        raise BadSetting("mirror", NO_COMMAND)

    def close(self) -> None:
        """Do nothing: the real chain is closed by itself."""


def _check_mirror(*, is_mirror: bool, wanted: str) -> None:
    """Raise `DifferentGenesis` for the store of another dev chain."""
    if not is_mirror:
        raise DifferentGenesis("mirror", "none", wanted)


def _begin_header(real: View) -> Header:
    """The block below the latest, on which a mirror begins. Raises `NoUpstream`."""
    assert real.heads.latest is not None, "a followed chain has its anchor"
    number = real.heads.latest[0] - 1
    if number < max(real.heads.base.number, real.heads.earliest):
        raise NoUpstream("the real chain has no block yet after the one that it begins on", 1)
    return read_header(real, number)[0]


def _read_at(real: View, number: int, wanted: StateKeys) -> KnownValues | StateKeys:
    """These values of a real block, or the keys that have to be fetched first."""
    state = real.state(number)
    homes = {address for address in wanted.codes.values() if address != NO_ADDRESS}
    addresses = wanted.accounts | wanted.codes_of | homes
    slots = {address: list(keys) for address, keys in wanted.slots.items()}
    missing = state.missing(list(addresses), slots)
    blocks: dict[int, bytes] = {}
    unknown_blocks = set[int]()
    for block in wanted.blocks:
        try:
            blocks[block] = state.block_hash(block)
        except StateMissing:
            unknown_blocks.add(block)
    if missing or unknown_blocks:
        keys = StateKeys.of(missing)
        return keys.also(StateKeys(blocks=frozenset(unknown_blocks)))
    codes = {address: state.code(address) for address in homes | wanted.codes_of}
    return KnownValues(
        {address: state.account(address) for address in addresses},
        {
            address: {slot: state.storage(address, slot) for slot in keys}
            for address, keys in slots.items()
        },
        [code for code in codes.values() if code],
        blocks,
    )
