"""Execution: one block's environment, and runs in it above a state."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, Self, final

from foreblock._engine.codec import Header, Log, Receipt
from foreblock._engine.fetched_state import MissingKeys
from foreblock._engine.params import AccessList
from foreblock._engine.state import Account, Changes
from foreblock._engine.transactions import Authorization, Transaction

@final
class Env:
    """The prepared environment of one block, shared by all runs in it."""

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
        """The values of a block, as its header and the fork schedule give them.

        `rules` is `ethereum:FORK` or `optimism:FORK` with one of these forks: Frontier,
        Homestead, Tangerine, SpuriousDragon, Byzantium, Constantinople (run as Petersburg),
        Petersburg, Istanbul, Berlin, London, Paris, Shanghai, Cancun, Prague, Osaka; Bedrock,
        Regolith, Canyon, Ecotone, Fjord, Granite, Holocene, Isthmus, Jovian, Karst.
        `InvalidArgument` for any other, and when `prevrandao` (from Paris) or
        `blob_base_fee` (Ethereum from Cancun) is missing. `max_code_size` replaces the limit
        of created code; code that creates may be twice as long. `max_transaction_gas` replaces
        the limit of a transaction's gas that a fork has.
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
        """Without `to` a contract is created. A `nonce` is compared with the state's."""

@final
class Precompiles:
    """Precompiles moved or switched off, for the runs of one block."""

    def __new__(cls, rules: str, overridden: list[bytes], moves: list[tuple[bytes, bytes]]) -> Self:
        """The fork's own precompiles, changed.

        `overridden` are all accounts with a state override: a precompile among them is
        switched off. `moves` are source and destination; `NotAPrecompile` names the lowest
        source that is none.
        """

@final
class Allowance:
    """A limit on what the transactions of a block use together, across calls of `transact`.

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

        `least_us` is work that is done even when the time is over, estimated from above, so
        that it never takes much longer. `gas` bounds the gas used by the whole block.
        `touched` bounds the accounts and slots looked up, and the writes and logs made.
        """

    def pause(self) -> None:
        """Stop its clock until its next use."""

@final
class Overlay:
    """Changes above one state, in memory until they are taken and committed."""

    @staticmethod
    def empty() -> Overlay:
        """An overlay above no state, for the state of a first block."""

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
        """Set what BLOCKHASH gives for a block that exists in this overlay only."""

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
        """Run a message and keep nothing of it.

        `InvalidMessage` when it cannot begin (funds, intrinsic gas, nonce, fees),
        `DeadlineExceeded` after `timeout_us` or before a step that cannot be stopped and takes
        longer than `step_us`. Switch the base fee check off only for a message without a price.
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
        """Run a message and keep its effects here.

        Raises as `call` does; then nothing has changed.
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
        """Make a call of the system; None, and nothing done, where there is no code."""

    def transact(
        self,
        env: Env,
        transactions: Sequence[Transaction],
        *,
        gas_used: int = ...,
        da_footprint: int = ...,
        allowance: Allowance | None = None,
    ) -> list[Executed]:
        """Execute the next transactions of a block under consensus rules.

        `gas_used` and `da_footprint` are what the block has used before.
        `InvalidTransaction` names the index of the first that may not stand in the block:
        nothing of it is applied, those before it are. `OverBudget` does the same for the
        first that takes more than the allowance has left, and `StateMissing` for the first
        that misses something: it has the misses of all that follow, too.
        """

    def probe(
        self,
        env: Env,
        transactions: Sequence[Transaction],
        allowance: Allowance,
    ) -> MissingKeys:
        """Collect what executing these transactions misses, each after those before it.

        Changes nothing. A transaction that cannot stand in the block has the misses it came to.
        With the gas or the entries of the allowance the probe ends; `OverBudget` is raised with
        its time only.
        """

    def take(self, number: int) -> Changes:
        """Give the changes since the last take. The overlay keeps them.

        `number`, from `Batch.draw`, is the generation of every life that began since.
        """

@final
class Outcome:
    """The result of a run. A revert or a failure of the VM is one too."""

    status: Final[Literal["success", "revert", "halt"]]
    halt: Final[str | None]  # the reason, worded as other clients do
    gas_used: Final[int]
    max_gas_used: Final[int]  # before refunds
    output: Final[bytes]  # returned data, revert data or the code of a created contract
    # The output as a JSON text: a quote, 0x, two digits a byte, a quote.
    quoted_output: Final[bytes]
    logs: Final[tuple[Log, ...]]
    # In a `Body`: the logs with their indices, traced transfers included.
    collected: Final[list[tuple[int, Log]] | None]

@final
class Executed:
    """A transaction of a block, executed."""

    gas_used: Final[int]
    logs: Final[tuple[Log, ...]]
    created: Final[bytes | None]  # the address of a created contract
    l1_fee: Final[int]
    operator_fee: Final[int]
    da_footprint: Final[int]

    def receipt(
        self,
        cumulative_gas_used: int,
        *,
        post_state: bytes | None = None,
        deposit_receipt_version: int | None = None,
    ) -> Receipt:
        """The receipt; `post_state` takes the place of the status before Byzantium."""

@final
class Pool:
    """Threads for long calls, shared fairly between addresses."""

    def __new__(
        cls, *, threads: int, capacity: int, begun: int | None = None, nice: int = ...
    ) -> Self:
        """`threads` run at once, and up to `capacity` jobs wait to begin.

        `begun` jobs are in progress at once, taking turns (default `threads`). Both are 1 to
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
        """Run a call as `Overlay.call` does; the overlay is empty afterwards.

        The thread never takes the interpreter's lock. `PoolFull` when too many wait, or the
        call would begin too late.
        """

    def submit_work(
        self,
        number: int,
        work: Callable[..., Any],
        *,
        address: int = ...,
        timeout_us: int | None = None,
    ) -> None:
        """Call `work(timeout_us=…)` on a thread with the time that is left then.

        Runs of the engine inside it end when the work is cancelled or late, and take turns.
        """

    def cancel(self, number: int) -> None:
        """Stop a job, or do not begin it."""

    def close(self) -> None:
        """Stop all jobs and begin none; waits up to a second for the threads."""

    def fileno(self) -> int:
        """A descriptor that is readable while there are results."""

    def take(self) -> list[tuple[int, Any, bool]]:
        """The jobs that ended since: number, result and whether it succeeded.

        The result is an `Outcome` or what the work returned; after a failure the exception.
        """

    @property
    def waiting(self) -> int: ...
