"""A simulated block that is being filled: what its calls see, and what they used so far."""

from typing import Final

from foreblock._engine import Body, Env, PlainCalls, Precompiles
from foreblock.ledger.fees import GAS_PER_BLOB
from foreblock.ledger.forks import CANCUN, JOVIAN
from foreblock.ledger.l1_attributes import L1_BLOCK
from foreblock.ledger.simulation.branch import Branch
from foreblock.ledger.surroundings import Surroundings

# Types of transactions, EIP-2718.
LEGACY: Final = 0
DYNAMIC_FEE: Final = 2
SET_CODE: Final = 4

FOOTPRINT_SLOT: Final = 8  # of L1Block: the scalar lies 96 bits from the right, OP from Jovian on
LEAST_SIZE: Final = 100  # bytes that the data of a transaction counts for at least, the same


class OpenBlock:
    """One block between its header and its seal."""

    def __init__(
        self, branch: Branch, around: Surroundings, precompiles: Precompiles | None
    ) -> None:
        # What its calls see.
        self.branch: Final = branch
        self.around: Final = around
        self.header: Final = around.header  # as it was when the block was opened
        self.rules: Final = around.rules
        self.env: Final = around.priced
        self.precompiles: Final = precompiles
        # What they used, and have become.
        self.gas_left = self.header.gas_limit
        self.body: Final = Body(
            branch.overlay,
            self.env,
            precompiles=precompiles,
            trace_transfers=branch.trace_transfers,
        )
        self._blobs = 0

    def environment(self, *, free_blobs: bool) -> Env:
        """What a call sees of the block; blob gas costs nothing for one that offers nothing."""
        if not free_blobs:
            return self.env
        return self.around.environment(free_gas=False, free_blobs=True)

    def run_plain(self, calls: PlainCalls, start: int) -> int:
        """Run calls that offer nothing for gas, from `start` on; gives the first that did not.

        It has to be judged, or others should have their turn.
        """
        branch, pace = self.branch, self.branch.pace
        index, gas = self.body.run_plain(
            calls,
            start,
            LEGACY if self.around.base_fee is None else DYNAMIC_FEE,
            self.gas_left,
            branch.budget,
            pace.timeout_us,
            pace.precompile_gas,
            pace.slice_us(),
        )
        self.use(gas)
        return index

    def use(self, gas: int) -> None:
        """Count the gas of calls, in the block and in the request; none uses more than is left."""
        self.gas_left -= gas
        self.branch.budget -= gas

    def use_blobs(self, count: int) -> None:
        """Count the blobs of a call that is shown as a transaction with blobs."""
        self._blobs += count

    @property
    def blob_gas_used(self) -> int | None:
        """What the header states as such: on OP chains from Jovian on the data's footprint.

        Nobody signed a simulated call, so its data counts with the least that any
        transaction does, as in reth.
        """
        if self.rules.ethereum < CANCUN:
            return None
        if self.rules.includes(JOVIAN):
            scalar = self.branch.overlay.storage(L1_BLOCK, FOOTPRINT_SLOT) >> 96 & 0xFFFF
            return len(self.body) * LEAST_SIZE * scalar
        return self._blobs * GAS_PER_BLOB
