"""A simulated block that is being filled: what its calls see, and what they used so far."""

from collections.abc import Sequence
from typing import Final

from foreblock._engine import Body, Env, Header, Overlay, PlainCalls, Precompiles, Withdrawal
from foreblock.errors import RefusedSimulation, Rule
from foreblock.ledger.reading.block_context import Surroundings
from foreblock.ledger.rules.execution import BEACON_ROOTS, HISTORY_STORAGE
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import CANCUN, JOVIAN, PRAGUE, SHANGHAI, Rules
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.ledger.rules.transaction_types import DYNAMIC_FEE, LEGACY
from foreblock.ledger.simulation.branch import Branch
from foreblock.ledger.simulation.request import FILLER, BlockRequest

FOOTPRINT_SLOT: Final = 8  # of L1Block: the scalar lies 96 bits from the right, OP from Jovian on
LEAST_SIZE: Final = 100  # bytes that the data of a transaction counts for at least, the same


class OpenBlock:
    """One block between its header and its seal."""

    def __init__(
        self,
        branch: Branch,
        asked: BlockRequest,
        around: Surroundings,
        precompiles: Precompiles | None,
    ) -> None:
        self.asked: Final = asked
        # What its calls see.
        self.branch: Final = branch
        self.around: Final = around
        self.header: Final = around.header  # as it was when the block was opened
        self.rules: Final = around.rules
        self.env: Final = around.priced
        self.precompiles: Final = precompiles
        # What they used, and have become.
        self.gas_left = self.header.gas_limit
        self.body: Final = Body(branch.overlay, self.env, precompiles, branch.trace_transfers)
        self._blobs = 0
        self._output = 0

    @property
    def is_filler(self) -> bool:
        """Whether nobody asked for it, and it only fills a gap."""
        return self.asked is FILLER

    @property
    def withdrawals(self) -> Sequence[Withdrawal] | None:
        """What leaves the consensus layer in it; none before Shanghai, where none could."""
        if self.rules.ethereum < SHANGHAI:
            return None
        return self.asked.block.withdrawals or ()

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
            type_of_plain(self.around),
            self.gas_left,
            branch.budget,
            pace.timeout_us,
            pace.step_us,
            pace.slice_us(),
        )
        self.use(gas)
        return index

    def use(self, gas: int) -> None:
        """Count the gas of calls, in the block and in the request; none uses more than is left.

        Raises `RefusedSimulation` if they have returned more than all calls may.
        """
        self.gas_left -= gas
        self.branch.budget -= gas
        output = self.body.output_size
        self.branch.output_left -= output - self._output
        self._output = output
        if self.branch.output_left < 0:
            why = "the calls of the simulation return too many bytes"
            raise RefusedSimulation(Rule.LIMIT, why)

    def use_blobs(self, count: int) -> None:
        """Count the blobs of a call that is shown as a transaction with blobs."""
        self._blobs += count

    @property
    def blob_gas_used(self) -> int | None:
        """What the header states as such."""
        return blob_gas_used(self.rules, self.branch.overlay, len(self.body), self._blobs)


def blob_gas_used(rules: Rules, overlay: Overlay, calls: int, blobs: int) -> int | None:
    """What a header states as such: on OP chains from Jovian on the data's footprint.

    Nobody signed a simulated call, so its data counts with the least that any
    transaction does, as in reth.
    """
    if rules.ethereum < CANCUN:
        return None
    if rules.includes(JOVIAN):
        scalar = overlay.storage(L1_BLOCK, FOOTPRINT_SLOT) >> 96 & 0xFFFF
        return calls * LEAST_SIZE * scalar
    return blobs * GAS_PER_BLOB


def type_of_plain(around: Surroundings) -> int:
    """The type of transaction that a call is shown as which says nothing of fees."""
    return LEGACY if around.base_fee is None else DYNAMIC_FEE


def told(header: Header, rules: Rules) -> list[tuple[bytes, bytes]]:
    """What the system contracts are told before a block's first call."""
    messages = []
    if header.parent_beacon_block_root is not None:
        messages.append((BEACON_ROOTS, header.parent_beacon_block_root))
    if rules.ethereum >= PRAGUE:
        messages.append((HISTORY_STORAGE, header.parent_hash))
    return messages


def has_queues(rules: Rules) -> bool:
    """Whether requests to the consensus layer wait in contracts; on OP chains there are none."""
    return rules.ethereum >= PRAGUE and rules.optimism is None
