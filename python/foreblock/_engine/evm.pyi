"""Execution: block environments, and execution on a state."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, Self, final

from foreblock._engine.codec import Header, _Log
from foreblock._engine.fetched_state import MissingKeys
from foreblock._engine.params import AccessList
from foreblock._engine.state import Account, Changes
from foreblock._engine.transactions import Authorization, Transaction

@final
class Env:
    """The prepared environment of one block, shared by all executions in it."""

    def __new__(
        cls,
        *,
        rules: str,
        chain_id: int,
        number: int,
        timestamp: int,
        coinbase: bytes,
        gas_limit: int,
        base_fee: int = ...,
        difficulty: int = ...,
        prevrandao: bytes | None = None,
        blob_base_fee: int | None = None,
        max_blobs_per_transaction: int | None = None,
        max_code_size: int | None = None,
        max_transaction_gas: int | None = None,
    ) -> Self:
        """The values of a block, from its header and the fork schedule.

        `rules` is `ethereum:FORK` or `optimism:FORK` with one of these forks: Frontier, Homestead,
        Tangerine, SpuriousDragon, Byzantium, Constantinople (executed as Petersburg), Petersburg,
        Istanbul, Berlin, London, Paris, Shanghai, Cancun, Prague, Osaka; Bedrock, Regolith, Canyon,
        Ecotone, Fjord, Granite, Holocene, Isthmus, Jovian, Karst. Raises `InvalidArgument` for any
        other, and if `prevrandao` (since Paris) or `blob_base_fee` (Ethereum since Cancun) is
        missing. `max_code_size` replaces the limit of deployed code; init code may be twice as
        long. `max_transaction_gas` replaces the fork's gas limit of a transaction.
        """

    @staticmethod
    def of_header(
        header: Header,
        *,
        rules: str,
        chain_id: int,
        blob_base_fee: int | None = None,
        max_blobs_per_transaction: int | None = None,
        max_code_size: int | None = None,
        max_transaction_gas: int | None = None,
    ) -> Env:
        """The environment of a header's block."""

@final
class Message:
    """An unsigned transaction, as in eth_call and eth_simulateV1."""

    def __new__(
        cls,
        *,
        sender: bytes,
        to: bytes | None = None,
        value: int = ...,
        data: bytes = ...,
        gas: int,
        nonce: int | None = None,
        gas_price: int | None = None,
        max_fee_per_gas: int | None = None,
        max_priority_fee_per_gas: int | None = None,
        access_list: AccessList | list[tuple[bytes, list[bytes]]] | None = None,
        blob_hashes: list[bytes] | None = None,
        max_fee_per_blob_gas: int | None = None,
        authorization_list: list[Authorization] | None = None,
    ) -> Self:
        """Without `to` a contract is created. A `nonce` is compared with that of the state."""

@final
class Precompiles:
    """The precompiles of one block with some moved or disabled."""

    def __new__(cls, rules: str, overridden: list[bytes], moves: list[tuple[bytes, bytes]]) -> Self:
        """Modify the fork's precompiles.

        `overridden` are all accounts with a state override: precompiles among them are disabled.
        `moves` are pairs of source and destination; `NotAPrecompile` names the lowest source that
        is not a precompile.
        """

@final
class Allowance:
    """A shared limit for the transactions of a block, across runs.

    It shrinks with use. Without an argument nothing is limited.
    """

    def __new__(
        cls,
        *,
        time_us: int | None = None,
        least_us: int = ...,
        gas: int | None = None,
        touched: int | None = None,
    ) -> Self:
        """`time_us` is wall time from now on.

        `least_us` is work that is done even after the deadline, by a conservative estimate, so that
        it never takes much longer. `gas` limits the gas used by the whole block. `touched` limits
        the number of accounts and slots read, writes and logs.
        """

    def pause(self) -> None:
        """Stop its clock until its next use."""

@final
class Overlay:
    """Changes on top of one state, in memory until they are taken and committed."""

    @staticmethod
    def empty() -> Overlay:
        """An overlay without a state below it, for the state of a first block."""

    def account(self, address: bytes) -> Account | None: ...
    def storage(self, address: bytes, slot: int) -> int: ...
    def code(self, address: bytes) -> bytes: ...
    def set(
        self,
        address: bytes,
        *,
        balance: int | None = None,
        nonce: int | None = None,
        code: bytes | None = None,
        state: dict[int, int] | None = None,
        state_diff: dict[int, int] | None = None,
    ) -> None:
        """Override fields of an account; `state` replaces all its storage."""

    def set_block_hash(self, number: int, hash: bytes) -> None:
        """Set the result of BLOCKHASH for a block that exists in this overlay only."""

    def credit(self, address: bytes, amount: int) -> None:
        """Add to a balance outside any transaction: a withdrawal or a reward."""

    def call(
        self,
        env: Env,
        message: Message,
        *,
        check_base_fee: bool = True,
        check_block_gas_limit: bool = False,
        precompiles: Precompiles | None = None,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Outcome:
        """Execute a message and discard its effects.

        Raises `InvalidMessage` if it cannot start (funds, intrinsic gas, nonce, fees), and
        `DeadlineExceeded` after `timeout_us` or before an uninterruptible step that takes longer
        than `step_us`. Disable the base fee check only for a message without a price.
        """

    def run(
        self,
        env: Env,
        message: Message,
        *,
        check_base_fee: bool = True,
        check_block_gas_limit: bool = True,
        precompiles: Precompiles | None = None,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Outcome:
        """Execute a message and keep its effects here.

        Raises as `call` does; nothing is changed then.
        """

    def system_call(
        self,
        env: Env,
        address: bytes,
        data: bytes,
        precompiles: Precompiles | None = None,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Outcome | None:
        """Execute a system call; None, without any effect, if there is no code."""

    def probe(
        self,
        env: Env,
        transactions: Sequence[Transaction],
        allowance: Allowance,
    ) -> MissingKeys:
        """Collect the keys that executing these transactions in sequence misses.

        Changes nothing. An invalid transaction contributes the keys missed until it failed. The
        probe ends when the gas or the entries of the allowance are used up; only the time limit
        raises `OverBudget`.
        """

    def take(self, number: int) -> Changes:
        """Return the changes since the last take. The overlay keeps them.

        `number`, from `Batch.draw`, is the generation of every account created since.
        """

@final
class BlockExecution:
    """A block under construction: the transactions so far, and what its header commits to."""

    def __new__(
        cls,
        overlay: Overlay,
        env: Env,
        *,
        deposit_receipt_version: int | None = None,
        max_blobs: int | None = None,
    ) -> Self:
        """An empty block, whose start has been applied to the overlay.

        With more than `max_blobs` blobs in the block, a transaction is invalid.
        """

    def resume(
        self,
        header: Header,
        transactions: Sequence[bytes],
        receipts: Sequence[bytes],
        *,
        logs: int,
        da_footprint: int = 0,
        blobs: int = 0,
        refunded: int = 0,
    ) -> None:
        """Continue a block after these transactions; the overlay has their changes.

        `header` is that of the block so far, `logs` the number of logs in the receipts, and
        `refunded` the gas that their sequencer refunds.
        """

    def set_refunds(self, refunds: Sequence[tuple[int, int]]) -> None:
        """Set the refunds of the transactions that run from now on: index in the block, and gas.

        Sorted by index. A transaction with more is invalid; so is a post-execution transaction
        in a block without refunds.
        """

    def run(
        self,
        transactions: Sequence[Transaction] | Sequence[bytes],
        allowance: Allowance | None = None,
        *,
        unsigned: bool = False,
    ) -> None:
        """Execute the next transactions.

        Encoded ones are decoded; their senders are recovered on all cores, ahead of the execution.
        With `unsigned`, an encoded transaction may name its sender. `Undecodable` has the index of
        the first that cannot be decoded; those before it may be added.

        `InvalidTransaction` and `OverBudget` have the index of the first transaction that does not
        run: it is not added, those before it are. `StateMissing` has the missing keys of all
        transactions: none is added, and nothing is changed.
        """

    def adopt(
        self,
        transactions: Sequence[Transaction],
        receipts: Sequence[bytes],
        *,
        gas_before: int,
        da_footprint: int = 0,
        blobs: int = 0,
    ) -> None:
        """Add transactions that were executed elsewhere; the overlay has their changes.

        `gas_before` is the gas that their receipts count before the first of them; here they count
        the gas of this block. `da_footprint` and `blobs` are those of all of them. Raises
        `Undecodable`, `InvalidArgument`.
        """

    count: Final[int]  # of the transactions
    gas_used: Final[int]
    refunded: Final[int]  # gas of the execution that is not in `gas_used`
    da_footprint: Final[int]
    blobs: Final[int]
    log_count: Final[int]
    size: Final[int]  # the bytes of the transactions
    added: Final[int]  # the number of transactions since the last `take`

    def take(self) -> tuple[list[bytes], bytes, list[bytes], list[bytes]]:
        """The encodings, senders, receipts and hashes of the transactions since the last call."""

    def set_post_state(self, root: bytes) -> None:
        """Set the state root in the last receipt in place of the status, as before Byzantium.

        `InvalidArgument` if nothing was added since the last `take`.
        """

    def fill(self, header: Header) -> Header:
        """Return the header with roots, bloom and gas of the transactions so far."""

    def fill_with_end(self, header: Header, raw: bytes) -> tuple[Header, bytes]:
        """Return the header as if this post-execution transaction ended the block; its receipt."""

@final
class Outcome:
    """The result of an execution, including a revert or an EVM error."""

    status: Final[Literal["success", "revert", "halt"]]
    halt: Final[str | None]  # the reason, in the wording of other clients
    gas_used: Final[int]
    max_gas_used: Final[int]  # before refunds
    output: Final[bytes]  # return data, revert data or the code of a created contract
    # The output as a JSON string: a quote, 0x, two digits per byte, a quote.
    quoted_output: Final[bytes]
    logs: Final[tuple[_Log, ...]]
    # In a `Body`: the logs with their indices, including traced transfers.
    collected: Final[list[tuple[int, _Log]] | None]

@final
class Pool:
    """Threads for long calls, shared fairly between client addresses."""

    def __new__(
        cls, *, threads: int, capacity: int, begun: int | None = None, nice: int = ...
    ) -> Self:
        """`threads` jobs run in parallel, and up to `capacity` jobs wait to start.

        Up to `begun` jobs are in progress at once and take turns (default `threads`). Both are 1 to
        1024; `nice` is the niceness of the threads, 0 to 19 (default 10).
        """

    def submit(
        self,
        number: int,
        overlay: Overlay,
        env: Env,
        message: Message,
        *,
        address: int = ...,
        check_base_fee: bool = True,
        check_block_gas_limit: bool = False,
        precompiles: Precompiles | None = None,
        timeout_us: int | None = None,
    ) -> None:
        """Execute a call as `Overlay.call` does; the overlay is empty afterwards.

        The thread never acquires the interpreter's lock. Raises `PoolFull` if too many jobs are
        waiting, or the call would start too late.
        """

    def submit_work(
        self,
        number: int,
        work: Callable[..., Any],
        *,
        address: int = ...,
        timeout_us: int | None = None,
    ) -> None:
        """Call `work(timeout_us=…)` on a thread with the time remaining then.

        Engine calls inside it end when the work is cancelled or late, and take turns.
        """

    def cancel(self, number: int) -> None:
        """Stop a job, or do not start it."""

    def close(self) -> None:
        """Stop all jobs and start no more; waits up to a second for the threads."""

    def fileno(self) -> int:
        """A descriptor that is readable while there are results."""

    def take(self) -> list[tuple[int, Any, bool]]:
        """The jobs completed since the last call: number, result, and True if it succeeded.

        The result is an `Outcome` or the return value of the work; after a failure the exception.
        """

    @property
    def waiting(self) -> int: ...
