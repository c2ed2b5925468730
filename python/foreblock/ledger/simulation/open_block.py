"""A simulated block that is being filled: its context, and the gas and blobs used so far."""

from collections.abc import Sequence
from typing import Final

from foreblock._engine import Body, Env, Overlay, PlainCalls, Precompiles, Withdrawal
from foreblock.errors import RefusedSimulation, Rule
from foreblock.ledger.reading.block_context import BlockContext
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import CANCUN, JOVIAN, PRAGUE, SHANGHAI, Rules
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.ledger.rules.transaction_types import DYNAMIC_FEE, LEGACY
from foreblock.ledger.simulation.simulated_chain import SimulatedChain
from foreblock.ledger.simulation.simulation_request import FILLER, BlockRequest

FOOTPRINT_SLOT: Final = 8  # of L1Block: the scalar is at bit 96, OP from Jovian on
LEAST_SIZE: Final = 100  # bytes that the data of a transaction counts for at least, the same


class OpenBlock:
    """One block between its header and its seal."""

    def __init__(
        self,
        chain: SimulatedChain,
        asked: BlockRequest,
        context: BlockContext,
        precompiles: Precompiles | None,
    ) -> None:
        self.asked: Final = asked
        # The context of its calls.
        self.chain: Final = chain
        self.context: Final = context
        self.header: Final = context.header  # as it was when the block was opened
        self.rules: Final = context.rules
        self.env: Final = context.priced
        self.precompiles: Final = precompiles
        # Used so far, and the results.
        self.gas_left = self.header.gas_limit
        self.body: Final = Body(chain.overlay, self.env, precompiles, chain.trace_transfers)
        self._blobs = 0
        self._output = 0

    @property
    def is_filler(self) -> bool:
        """Whether it only fills a gap in the numbers."""
        return self.asked is FILLER

    @property
    def withdrawals(self) -> Sequence[Withdrawal] | None:
        """The withdrawals in it; none before Shanghai."""
        if self.rules.ethereum < SHANGHAI:
            return None
        return self.asked.block.withdrawals or ()

    def environment(self, *, free_blobs: bool) -> Env:
        """The environment of a call; with `free_blobs` blob gas costs nothing."""
        if not free_blobs:
            return self.env
        return self.context.environment(free_gas=False, free_blobs=True)

    def run_plain(self, calls: PlainCalls, start: int) -> int:
        """Run calls that offer nothing for gas, from `start` on; gives the first that did not run.

        That one has to be checked, or the slice is over.
        """
        chain, pace = self.chain, self.chain.pace
        index, gas = self.body.run_plain(
            calls,
            start,
            type_of_plain(self.context),
            self.gas_left,
            chain.budget,
            pace.timeout_us,
            pace.step_us,
            pace.slice_us(),
        )
        self.use(gas)
        return index

    def use(self, gas: int) -> None:
        """Count the gas of calls, in the block and in the request; no call uses more than is left.

        Raises `RefusedSimulation` if the calls have returned too many bytes.
        """
        self.gas_left -= gas
        self.chain.budget -= gas
        output = self.body.output_size
        self.chain.output_left -= output - self._output
        self._output = output
        if self.chain.output_left < 0:
            why = "the calls of the simulation return too many bytes"
            raise RefusedSimulation(Rule.LIMIT, why)

    def use_blobs(self, count: int) -> None:
        """Count the blobs of a call that is shown as a transaction with blobs."""
        self._blobs += count

    @property
    def blob_gas_used(self) -> int | None:
        """The value in the header."""
        return blob_gas_used(self.rules, self.chain.overlay, len(self.body), self._blobs)


def blob_gas_used(rules: Rules, overlay: Overlay, calls: int, blobs: int) -> int | None:
    """The value in a header: on OP chains from Jovian on the footprint of the data.

    A simulated call has no signature, so its data counts with the minimum of any
    transaction, as in reth.
    """
    if rules.ethereum < CANCUN:
        return None
    if rules.includes(JOVIAN):
        scalar = overlay.storage(L1_BLOCK, FOOTPRINT_SLOT) >> 96 & 0xFFFF
        return calls * LEAST_SIZE * scalar
    return blobs * GAS_PER_BLOB


def type_of_plain(context: BlockContext) -> int:
    """The type of transaction that a call without fees is shown as."""
    return LEGACY if context.base_fee is None else DYNAMIC_FEE


def has_queues(rules: Rules) -> bool:
    """Whether contracts queue requests to the consensus layer; not on OP chains."""
    return rules.ethereum >= PRAGUE and rules.optimism is None
