"""The parts put together: a store and an operator's choices become a service."""

import os
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from foreblock.bus.link import WriterLink
from foreblock.clock import SystemClock
from foreblock.ledger.call import Pool
from foreblock.ledger.express import ExpressBounds
from foreblock.ledger.readiness import readiness
from foreblock.ledger.view import Ledger
from foreblock.methods import make_methods
from foreblock.methods.call_object import UNCAPPED
from foreblock.methods.options import Options
from foreblock.methods.placement import IN_PLACE_PRECOMPILE_GAS, IN_PLACE_US, Placement
from foreblock.methods.simulations import Simulations
from foreblock.methods.submissions import Submissions
from foreblock.network import Network
from foreblock.reply import Handler, Readiness, Served
from foreblock.rpc.batch import Limits
from foreblock.rpc.dispatch import Dispatcher
from foreblock.rpc.errors import fault_of
from foreblock.settings import Settings
from foreblock.turns import Turns

NO_LIMIT: Final = sys.maxsize
DAY_MS: Final = 24 * 60 * 60 * 1000
SECOND_NS: Final = 10**9


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What an operator may choose about one service."""

    methods: Options = field(default_factory=Options)
    limits: Limits = field(default_factory=Limits)
    pool_threads: int = 1
    pool_capacity: int = 64  # long calls that may wait


class Service:
    """Answers the requests of one network, in one loop."""

    def __init__(
        self, ledger: Ledger, options: ServiceOptions, submissions: Submissions | None = None
    ) -> None:
        """Without `submissions`, the way to a sequencer, it only reads."""
        pool = Pool(threads=options.pool_threads, capacity=options.pool_capacity)
        self._placement = Placement(pool, options.methods.call_timeout_ms)
        turns = Turns()
        self._simulations = Simulations(
            options.methods.call_timeout_ms,
            options.pool_threads,
            options.pool_capacity,
            turns=turns,
        )
        dispatcher = Dispatcher(
            make_methods(options.methods, self._placement, self._simulations, submissions),
            ledger.view,
            partial(fault_of, dialect=options.methods.dialect),
            options.limits,
            turns=turns,
        )
        # The reply to a body; never raises. This is the handler that a server needs.
        self.answer: Final[Handler] = dispatcher.answer

    def close(self) -> None:
        """Stop waiting for calls; the ledger is whoever opened it's to close."""
        self._placement.close()
        self._simulations.close()


@dataclass(frozen=True, slots=True)
class WriterSubmissions:
    """The way to the sequencer of one network, which runs in the writer."""

    link: WriterLink
    network: str

    async def submit(self, raw: bytes, sender: bytes) -> None:
        """Hand a transaction over; raises `RejectedTransaction`, `SequencerUnavailable`."""
        await self.link.submit(self.network, raw, sender)

    def next_nonce(self, sender: bytes) -> int:
        """What the writer has said of a sender; 0 if nothing."""
        return self.link.next_nonce(self.network, sender)


def make_handler(settings: Settings, network: Network, link: WriterLink | None) -> Served:
    """One network in one worker: what a body is answered with, as the settings want it."""
    ledger = Ledger.open(network.data, announce=settings.snapshot_header)
    submissions = None if link is None else WriterSubmissions(link, network.name)
    options = options_of(settings)
    service = Service(ledger, options, submissions)
    express = ledger.open_express(express_bounds(options))
    return Served(service.answer, partial(_readiness, ledger, network, link), express)


def express_bounds(options: ServiceOptions) -> ExpressBounds:
    """What may be answered without the dispatcher, so that both ways have the same limits."""
    return ExpressBounds(
        batch_items=options.limits.batch_items,
        batch_bytes=options.limits.batch_bytes,
        call_gas=options.methods.gas_cap or UNCAPPED,
        call_us=IN_PLACE_US,
        precompile_gas=IN_PLACE_PRECOMPILE_GAS,
    )


def _readiness(ledger: Ledger, network: Network, link: WriterLink | None) -> Readiness:
    clock = SystemClock()
    view = ledger.view()
    try:
        ready, facts = readiness(view, clock.wall_ns(), moves=network.source != "store")
    finally:
        view.close()
    told = None if link is None else link.source_facts(network.name)
    if told is not None:
        age = (clock.monotonic_ns() - told.told_ns) / SECOND_NS
        facts = (*facts, f"source: as it was {age:.1f} s ago", *told.facts)
    return Readiness(ready, facts)


def options_of(settings: Settings) -> ServiceOptions:
    """The choices that settings make about a service. 0 lifts a limit."""
    call, batch, pool, simulate = settings.call, settings.batch, settings.pool, settings.simulate
    return ServiceOptions(
        methods=Options(
            dialect=settings.dialect,
            gas_cap=call.gas_cap,
            call_timeout_ms=round(call.timeout * 1000) or DAY_MS,
            call_create=call.create,
            simulate_blocks=simulate.blocks,
            simulate_block_calls=simulate.block_calls,
            simulate_calls=simulate.calls,
            simulate_output=simulate.output,
            pending_identity=settings.pending_identity,
            pending_nonce=settings.pending_nonce,
        ),
        limits=Limits(
            batch_items=batch.items or NO_LIMIT,
            batch_bytes=batch.bytes or NO_LIMIT,
        ),
        pool_threads=pool.threads or _shared_threads(settings.workers),
        pool_capacity=pool.queue,
    )


def _shared_threads(workers: int) -> int:
    """Threads for long calls in each worker: all cores but one, shared by the workers."""
    cores = os.cpu_count() or 1
    return max(1, (cores - 1) // (workers or cores))
