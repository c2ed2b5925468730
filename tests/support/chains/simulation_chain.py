"""Chains to simulate on, and blocks simulated directly in the ledger, without a request."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from foreblock.ledger.calls.request import (
    BlockOverrides,
    BlockRequest,
    SimulationLimits,
    SimulationRequest,
)
from foreblock.ledger.calls.simulation import SimulatedBlock, simulate
from foreblock.ledger.reading.view import Ledger
from foreblock.scheduling.steps import UNHURRIED, Pace, Steps
from support.chains.builder import ChainBuilder
from support.chains.profiles import JOVIAN
from support.servers.long_work import finish
from support.strategies.simulation_strategy import COINBASE, accounts

BASE_FEE = 20
GENEROUS = SimulationLimits()
GENESIS = json.dumps(
    {
        "config": JOVIAN,
        "gasLimit": "0x5f5e100",
        "difficulty": "0x0",
        "extraData": "0x0100000032000000060000000000000000",
        "alloc": {},
    }
).encode()


@dataclass(frozen=True)
class Chain:
    """A chain in a store."""

    ledger: Ledger
    file: Path

    def digest(self) -> bytes:
        """A hash over the store's file."""
        return hashlib.sha256(self.file.read_bytes()).digest()


def build_optimism(folder: Path) -> None:
    """Build a chain of the other rule set, with one block."""
    builder = ChainBuilder(folder, GENESIS)
    builder.add()
    builder.store.close()


def priced(requests: list[BlockRequest]) -> list[BlockRequest]:
    """Return these blocks with a base fee, an explicit coinbase, and funded callers."""
    overrides = BlockOverrides(base_fee_per_gas=BASE_FEE, beneficiary=COINBASE)
    first = structs.replace(requests[0], overrides=accounts())
    return [structs.replace(each, block=overrides) for each in (first, *requests[1:])]


def simulated(
    chain: Chain,
    requests: list[BlockRequest],
    *,
    validation: bool = False,
    limits: SimulationLimits = GENEROUS,
) -> list[SimulatedBlock]:
    """Simulate the blocks on top of the last one of the chain."""
    return finish(simulated_steps(chain, requests, UNHURRIED, limits, validation=validation))


def simulated_steps(
    chain: Chain,
    requests: list[BlockRequest],
    pace: Pace,
    limits: SimulationLimits = GENEROUS,
    *,
    validation: bool = False,
) -> Steps[list[SimulatedBlock]]:
    """The steps of that simulation, for a driver."""
    view = chain.ledger.view()
    try:
        request = SimulationRequest(requests, validation=validation, trace_transfers=True)
        base = view.latest
        state = view.state(base)
        return (yield from simulate(base, state, view.unused, request, limits, pace))
    finally:
        view.close()
