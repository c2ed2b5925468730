"""A mirror in the process of a test: a dev chain, a service that follows it, and the mirror."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Raw

from foreblock import DevChain
from foreblock.bus.messages import BusRequest, GetState
from foreblock.clock import SECOND_NS, DrivenClock
from foreblock.dev_chain.access import ChainAccess
from foreblock.dev_chain.control import ChainControl
from foreblock.dev_chain.driven_loop import finish
from foreblock.dev_chain.failures import CustomErrors
from foreblock.dev_chain.following import ChainFollower
from foreblock.dev_chain.local_network import LocalNetwork
from foreblock.dev_chain.local_service import RESOURCES
from foreblock.errors import StateMissing
from foreblock.follow.pre_anchor import VerifiedHistory
from foreblock.follow.worker_state import FetchBudget, WorkerState
from foreblock.fork.history import ForkedHistory
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.open_store import Store
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.methods.table import MethodFunction
from foreblock.mirror.mirror_source import MirrorSource
from foreblock.rpc.fetching_dispatcher import Missed
from foreblock.sequencer.faults.feed import FeedSink
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.settings import ChainSettings, FollowSettings, KeepSettings
from foreblock.settings.networks import Network
from foreblock.sources.dev_network import DevChainSource


class FollowedChain:
    """The real chain: the store of a service that follows it, which knows all of its state."""

    shown = "chain"

    def __init__(self, chain: DevChain, follower: ChainFollower) -> None:
        self._chain, self._follower = chain, follower

    @property
    def store(self) -> Store:
        return self._follower._network.source.store

    def learn(self, wanted: StateKeys) -> None:
        raise AssertionError(f"it knows everything: {wanted}")

    async def ask(self, method: str, params: bytes) -> bytes:
        """The result of a request, as an upstream has it."""
        return self._chain._network.request(method, params)

    def answer(self, request: BusRequest) -> None:
        raise AssertionError(f"nobody asks: {request}")


class MirroredReads:
    """Reads of state that the store of the mirror does not have."""

    def __init__(self, source: MirrorSource, real: FollowedChain, ledger: Ledger) -> None:
        async def find(epoch: int, keys: bytes, _: float) -> bytes:
            return source.mirrored.values(GetState(epoch, keys))

        shared, ask = source.mirrored.learned, real.ask
        self.state = WorkerState(ledger, FollowSettings(), find, ask_upstream=ask, shared=shared)
        self._blocks = VerifiedHistory(ledger, self.state, ask, believes=True, only_below=True)
        self._passed = ForkedHistory(ask)

    def add(self, methods: dict[str, MethodFunction]) -> None:
        """Make methods reach below the mirror."""
        self._blocks.add(methods)
        self._passed.add(methods)

    def fetch(self, budget: FetchBudget, method: str, params: bytes, why: StateMissing) -> None:
        work: Awaitable[Any] = budget.fetch([Missed(method, Raw(params), why)])
        finish(work, DrivenClock(), lambda _: None)


class LocalMirror(LocalNetwork):
    """The mirror, its sequencer and its methods."""

    def __init__(self, network: Network, clock: DrivenClock, real: FollowedChain) -> None:
        self._real = real
        assert network.dev is not None
        super().__init__(network, clock, dev_accounts(network.dev.mnemonic, 10))

    def _open_source(self, network: Network, sink: FeedSink, fork: object) -> DevChainSource:  # noqa: ARG002
        return MirrorSource(network, self.clock, self._real)

    def _reads(self) -> Callable[[Ledger], Any]:
        assert isinstance(self._source, MirrorSource)
        return partial(MirroredReads, self._source, self._real)

    def changed(self) -> None:
        """Take over all that the real chain has."""
        with self.lock:
            assert isinstance(self._source, MirrorSource)
            self._source.real_changed()
            self.run_for(0)


class Mirror(ChainControl):
    """A mirror, with the chain that it mirrors and the service that follows that."""

    _network: LocalMirror

    def __init__(self, chain: DevChain, follower: ChainFollower, folder: Path) -> None:
        self.chain, self.follower = chain, follower
        network = Network(
            name="mirror",
            data=str(folder / "mirror"),
            source="dev",
            keep=KeepSettings(states=1_800),
            sync=False,
            store=RESOURCES,
            dev=ChainSettings(mirror="chain", accounts=10),
        )
        clock = DrivenClock(chain.block().timestamp * SECOND_NS)
        local = LocalMirror(network, clock, FollowedChain(chain, follower))
        self.opened = ExitStack()
        self.opened.callback(local.close)
        super().__init__(local, CustomErrors(), self.opened, by_clock=False)

    def wait(self) -> None:
        """Take over all that the chain has."""
        self.follower.wait()
        self._network.changed()

    @property
    def real(self) -> ChainAccess:
        """The service that follows the chain."""
        return self.follower


@contextmanager
def mirrored(folder: Path, **settings: str) -> Iterator[Mirror]:
    """A mirror of a chain of two blocks, on which only commands do anything."""
    with DevChain(mode="manual", **settings) as chain:  # type: ignore[arg-type]
        chain.seal(2)
        follower = chain.follow()
        mirror = Mirror(chain, follower, folder)
        with mirror.opened:
            yield mirror
