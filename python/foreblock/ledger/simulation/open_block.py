"""A simulated block that is being filled: what its calls see, and what they used so far."""

from typing import Final

from foreblock._engine import Body, Env, Header, Outcome, Precompiles, Transaction
from foreblock.ledger.execution import BLOB
from foreblock.ledger.fees import GAS_PER_BLOB
from foreblock.ledger.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.simulation.branch import Branch
from foreblock.ledger.simulation.request import SimulationRequest
from foreblock.ledger.surroundings import Surroundings

L1_BLOCK: Final = bytes.fromhex("4200000000000000000000000000000000000015")  # OP
FOOTPRINT_SLOT: Final = 8  # of L1Block: the scalar lies 96 bits from the right, OP from Jovian on
LEAST_SIZE: Final = 100  # bytes that the data of a transaction counts for at least, the same


class Budget:
    """The gas that all calls of a simulation may use together."""

    def __init__(self, gas: int) -> None:
        self.left = gas


class OpenBlock:
    """One block between its header and its seal."""

    def __init__(
        self,
        branch: Branch,
        around: Surroundings,
        precompiles: Precompiles | None,
        request: SimulationRequest,
        budget: Budget,
    ) -> None:
        self.branch: Final = branch
        self.around: Final = around
        self.precompiles: Final = precompiles
        self.validation: Final = request.validation
        self.trace_transfers: Final = request.trace_transfers
        self.budget: Final = budget
        self.body: Final = Body()
        self.next_log_index = 0
        self.env: Final = around.environment(free_gas=False, free_blobs=False)
        self._blobs = 0

    @property
    def header(self) -> Header:
        """As it was when the block was opened."""
        return self.around.header

    @property
    def rules(self) -> Rules:
        """The forks in force."""
        return self.around.rules

    @property
    def gas_left(self) -> int:
        """What the calls so far leave of the block's gas."""
        return self.header.gas_limit - self.body.gas_used

    def environment(self, *, free_blobs: bool) -> Env:
        """What a call sees of the block; blob gas costs nothing for one that offers nothing."""
        if not free_blobs:
            return self.env
        return self.around.environment(free_gas=False, free_blobs=True)

    def add(self, transaction: Transaction, outcome: Outcome) -> None:
        """Take in a call that has run; its blobs count if the transaction shown has them."""
        early = self.rules.ethereum < EthereumFork.BYZANTIUM
        self.body.push(transaction, outcome, self.branch.state_root() if early else None)
        self.budget.left -= min(outcome.gas_used, self.budget.left)
        self.next_log_index = outcome.next_log_index or 0
        if transaction.type == BLOB:
            self._blobs += len(transaction.blob_versioned_hashes or ())

    @property
    def blob_gas_used(self) -> int | None:
        """What the header states as such: on OP chains from Jovian on the data's footprint.

        Nobody signed a simulated call, so its data counts with the least that any
        transaction does, as in reth.
        """
        if self.rules.ethereum < EthereumFork.CANCUN:
            return None
        if self.rules.includes(OptimismFork.JOVIAN):
            scalar = self.branch.overlay.storage(L1_BLOCK, FOOTPRINT_SLOT) >> 96 & 0xFFFF
            return len(self.body) * LEAST_SIZE * scalar
        return self._blobs * GAS_PER_BLOB
