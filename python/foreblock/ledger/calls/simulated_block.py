"""One simulated block between its header and its seal: defaults, checks and runs of its calls.

A failed check refuses the whole simulation; a call that fails is a result. Fees are really moved
from the sender to their recipients. Without validation, a call that offers nothing for gas pays
nothing.

`plain_simulation` is a fast path for blocks of plain calls without block overrides, which is most
simulations: one call of the engine for a slice of any number of blocks. A test compares the two.
It gives a complete result or none: if anything has to be decided or takes long, the state it ran
on is dropped and nothing has happened.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec import structs

from foreblock._engine import (
    BlockTemplate,
    Body,
    Env,
    Overlay,
    PlainCalls,
    PlainSimulation,
    Precompiles,
    State,
)
from foreblock.errors import (
    DeadlineExceeded,
    InvalidMessage,
    InvalidParams,
    RefusedSimulation,
    Rule,
)
from foreblock.ledger.calls.call import FEE_LIMIT, Reason, check_fields, first_reason, message
from foreblock.ledger.calls.request import (
    AS_IT_IS,
    FILLER,
    LAST_TIME,
    BlockRequest,
    Call,
    CallRequest,
    SimulationLimits,
    SimulationRequest,
    plain_request,
)
from foreblock.ledger.calls.simulated_chain import SimulatedChain
from foreblock.ledger.reading.blocks import BlockContext, ReadableBlock
from foreblock.ledger.rules.execution import HISTORY_STORAGE, start_calls
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import BYZANTIUM, CANCUN, JOVIAN, PARIS, PRAGUE, SHANGHAI, Rules
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.ledger.rules.transaction_rules import (
    BLOB,
    DYNAMIC_FEE,
    LEGACY,
    SET_CODE,
    checksum_address,
)
from foreblock.scheduling.steps import Steps, Work
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.types import Withdrawal

FOOTPRINT_SLOT: Final = 8  # of L1Block: where the scalar is, OP from Jovian on
FOOTPRINT_SHIFT: Final = 96  # the lowest bit of the scalar
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
        """True if it only fills a gap in the numbers."""
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
        """Run calls without a gas price, from `start` on; returns the first that did not run.

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
        return blob_gas_used(self.rules, self.chain.overlay, len(self.body), self._blobs)


def blob_gas_used(rules: Rules, overlay: Overlay, calls: int, blobs: int) -> int | None:
    """The value in a header: on OP chains since Jovian the footprint of the data.

    A simulated call has no signature, so its data counts with the minimum of any
    transaction, as in reth.
    """
    if rules.ethereum < CANCUN:
        return None
    if rules.includes(JOVIAN):
        scalar = overlay.storage(L1_BLOCK, FOOTPRINT_SLOT) >> FOOTPRINT_SHIFT & 0xFFFF
        return calls * LEAST_SIZE * scalar
    return blobs * GAS_PER_BLOB


def type_of_plain(context: BlockContext) -> int:
    """The type of transaction that a call without fees is shown as."""
    return LEGACY if context.base_fee is None else DYNAMIC_FEE


def has_queues(rules: Rules) -> bool:
    """True if contracts queue requests to the consensus layer; not on OP chains."""
    return rules.ethereum >= PRAGUE and rules.optimism is None


Calls = Sequence[CallRequest] | PlainCalls

LAST_NONCE: Final = 2**64 - 1


def run_at_once(block: OpenBlock, calls: Calls, start: int = 0) -> int:
    """Run plain calls from `start` on; returns the first that needs the checks, or a new slice.

    Without validation the engine runs them up to the first call that the checks would refuse.
    """
    judged = block.chain.validation or block.rules.ethereum < BYZANTIUM
    if judged or not isinstance(calls, PlainCalls):
        return start
    return block.run_plain(calls, start)


def run_calls(block: OpenBlock, calls: Calls, start: int) -> Steps[None]:
    """Run the calls of a block from `start` on, one after the other, and keep their effects.

    A call at which the engine stopped goes through the checks, which give the right refusal.
    """
    index = start
    while index < len(calls):
        if index and block.chain.pace.is_over():
            yield None
        request = plain_request(calls, index) if isinstance(calls, PlainCalls) else calls[index]
        yield from _run(block, request)
        index = run_at_once(block, calls, index + 1)


def _run(block: OpenBlock, request: CallRequest) -> Steps[None]:
    """Run a call of any kind, if it passes all checks."""
    chain = block.chain
    call, run = _judge(block, request)
    try:
        try:
            pace = chain.pace
            gas = run(timeout_us=pace.timeout_us, step_us=pace.step_us)
        except DeadlineExceeded:
            gas = yield run
    except InvalidMessage as refused:
        _refuse((Rule.OTHER, refused.why), call)
    block.use(gas)
    if block.rules.ethereum < BYZANTIUM:  # receipts hold the state root
        block.body.set_post_state((yield from chain.state_root()))


def _judge(block: OpenBlock, request: CallRequest) -> tuple[Call, Work]:
    """The call with its gas, and its run: after all checks, in their order."""
    chain, base_fee = block.chain, block.context.base_fee
    validation = chain.validation
    _check_kind(block, request.call)
    state_nonce, balance = _account(block, request.call)
    nonce = state_nonce if request.nonce is None else request.nonce
    gas, lowered = _gas(block, request)
    call = structs.replace(request.call, gas=gas)
    if not call.is_plain:
        check_fields(call, chain.profile.chain_id)

    if validation:
        _refuse(_nonce_reason(call, nonce, state_nonce), call)
    _refuse(first_reason(call, block.context, balance, strict=validation), call)
    if call.highest_fee >= FEE_LIMIT:
        _refuse((Rule.OTHER, "fees above 2^128 - 1 are not supported"), call)

    kind = _transaction_type(call, base_fee)
    if kind == BLOB:
        block.use_blobs(len(call.blob_hashes or ()))
    waived = not validation and not (call.fee_cap or call.fee_tip)
    free_blobs = not validation and not call.max_fee_per_blob_gas
    return call, partial(
        block.body.run,
        message(call, base_fee),
        kind,
        nonce,
        env=block.environment(free_blobs=free_blobs and bool(call.blob_hashes)),
        check_base_fee=not waived,
        lowered=lowered,
    )


def _account(block: OpenBlock, call: Call) -> tuple[int, int]:
    """The nonce and the balance of the sender."""
    account = block.chain.overlay.account(call.sender)
    return (0, 0) if account is None else (account.nonce, account.balance)


def _check_kind(block: OpenBlock, call: Call) -> None:
    """Refuse kinds of transactions that no block of this chain can hold."""
    if call.blob_hashes is not None and block.rules.optimism is not None:
        raise InvalidParams("there are no blob transactions on this chain")
    if call.blob_hashes is not None and call.authorizations is not None:
        raise InvalidParams("a transaction has either blobs or authorizations")
    if call.to is None and call.blob_hashes is not None:
        raise InvalidParams("blob transaction of type create")
    if call.to is None and call.authorizations is not None:
        raise InvalidParams("EIP-7702 transaction cannot be used to create contract")


def _gas(block: OpenBlock, request: CallRequest) -> tuple[int, bool]:
    """The gas of a call, and whether it was lowered to what the request has left.

    The engine applies the same rule to the plain calls that it runs by itself.
    """
    left, budget = block.gas_left, block.chain.budget
    gas = left if request.gas is None else request.gas
    if gas > left:
        why = f"block gas limit reached: remaining: {left}, required: {gas}"
        raise RefusedSimulation(Rule.BLOCK_GAS, why)
    return min(gas, budget), gas > budget


def _nonce_reason(call: Call, nonce: int, state_nonce: int) -> Reason | None:
    if nonce == state_nonce < LAST_NONCE:
        return None
    sender = checksum_address(call.sender)
    if nonce > state_nonce:
        why = f"nonce too high: address {sender}, tx: {nonce} state: {state_nonce}"
        return Rule.NONCE_TOO_HIGH, why
    if nonce < state_nonce:
        why = f"nonce too low: address {sender}, tx: {nonce} state: {state_nonce}"
        return Rule.NONCE_TOO_LOW, why
    return Rule.OTHER, f"nonce has max value: address {sender}, nonce: {nonce}"


def _refuse(reason: Reason | None, call: Call) -> None:
    if reason is not None:
        rule, why = reason
        raise RefusedSimulation(rule, f"err: {why} (supplied gas {call.gas})") from None


def _transaction_type(call: Call, base_fee: int | None) -> int:
    """The type of transaction that a call is shown as, as in geth."""
    if call.gas_price is not None or base_fee is None:
        return LEGACY
    if call.authorizations is not None:
        return SET_CODE
    return DYNAMIC_FEE if call.blob_hashes is None else BLOB


def plain_simulation(
    base: ReadableBlock, state: State, request: SimulationRequest, limits: SimulationLimits
) -> PlainSimulation | None:
    """The blocks after `base`, to be run by the engine; None if it cannot run them alone.

    A client has simulated the block after `base` before. State roots are zero.
    """
    if request.validation or request.trace_transfers or request.state_roots:
        return None
    template = simulation_template(base, len(request.blocks))
    if template is None:
        return None
    blocks = []
    for asked in request.blocks:
        calls, overrides = asked.calls, asked.overrides
        if asked.block is not AS_IT_IS or (overrides is not None and overrides.is_large):
            return None
        if not isinstance(calls, PlainCalls) or len(calls) > THRESHOLDS.sealed_calls:
            return None
        blocks.append((calls, overrides))
    return PlainSimulation(template, state, blocks, gas=limits.gas, output=limits.output)


def simulation_template(
    base: ReadableBlock, count: int = THRESHOLDS.fast_simulated_calls
) -> BlockTemplate | None:
    """The block after `base` and the rules by which up to `count` blocks follow each other.

    None if their rules differ, if the engine does not know them, or if no client has simulated
    that block yet.
    """
    context = base.following
    if context is None or not _are_equal(base, context, count):
        return None
    if context.template is None:
        context.template = _template(context)
    return context.template


def _are_equal(base: ReadableBlock, first: BlockContext, count: int) -> bool:
    """Return whether this many blocks have the rules of the first, and the engine knows them."""
    header, rules, profile = first.header, first.rules, first.profile
    if rules.ethereum < BYZANTIUM or has_queues(rules):
        return False
    if count == 1:
        return True
    if rules.ethereum < PARIS or header.excess_blob_gas:  # miners are paid, blobs have a price
        return False
    number, time = base.number + count, base.header.timestamp + count * profile.time_step
    blobs = profile.blob_parameters(header.timestamp)
    return (
        time <= LAST_TIME
        and profile.rules(number, time, merged=True) == rules
        and profile.blob_parameters(time) == blobs
    )


def _template(context: BlockContext) -> BlockTemplate:
    header, rules = context.header, context.rules
    footprint = LEAST_SIZE, L1_BLOCK, FOOTPRINT_SLOT, FOOTPRINT_SHIFT
    return BlockTemplate(
        context.priced,
        header,
        type_of_plain(context),
        context.profile.time_step,
        [
            (contract, None if contract == HISTORY_STORAGE else data)
            for contract, data in start_calls(header, rules)
        ],
        footprint=footprint if rules.includes(JOVIAN) else None,
        has_withdrawals=rules.ethereum >= SHANGHAI,
    )
