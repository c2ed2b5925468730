"""Execution: one block's environment, and runs in it above a state."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, final

from foreblock._engine.codec import Header, Log, Receipt
from foreblock._engine.params import AccessList
from foreblock._engine.state import Account, Changes
from foreblock._engine.transactions import Authorization, Transaction

@final
class Env:
    """The prepared environment of one block, to be shared by all runs in it."""

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
    ) -> Self:
        """The values of a block, as its header and the fork schedule give them.

        `rules` is `ethereum:FORK` or `optimism:FORK` with one of these forks: Frontier,
        Homestead, Tangerine, SpuriousDragon, Byzantium, Constantinople (run as Petersburg),
        Petersburg, Istanbul, Berlin, London, Paris, Shanghai, Cancun, Prague, Osaka; Bedrock,
        Regolith, Canyon, Ecotone, Fjord, Granite, Holocene, Isthmus, Jovian, Karst.
        `InvalidArgument` for any other, and when `prevrandao` (from Paris) or
        `blob_base_fee` (Ethereum from Cancun) is missing. What is left out is 0 or none.
        """

    @staticmethod
    def of_header(
        header: Header,
        *,
        rules: str,
        chain_id: int,
        blob_base_fee: int | None = None,
        max_blobs_per_transaction: int | None = None,
    ) -> Env:
        """The same, with the header's own values for the rest."""

@final
class Message:
    """A transaction that nobody signed, as eth_call and eth_simulateV1 mean it."""

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
        """Without `to` a contract is created. A `nonce` is compared with the state's.

        What is left out is 0, empty or none.
        """

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
    """What the transactions of a block may take together, in whatever calls they run.

    What one has taken is no longer there for the next. Nothing is limited unless it is said.
    """

    def __new__(
        cls,
        *,
        time_us: int | None = None,
        least_us: int = ...,
        gas: int | None = None,
        touched: int | None = None,
    ) -> Self:
        """`time_us` is from now on, by the clock.

        `least_us` is work that is done however late it is, 0 if left out: counted from
        above, so that it never takes much longer. `gas` is what the block may have used in
        all. `touched` is how many accounts and slots may be looked up, and how many writes
        and logs may be made.
        """

@final
class Overlay:
    """Changes above one state, kept nowhere until they are taken and committed."""

    @staticmethod
    def empty() -> Overlay:
        """Above no state at all: for the state of a first block."""

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
        """What BLOCKHASH gives for a block that exists in this overlay only."""

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
        longer than `step_us`. The base fee check is to be switched off for a message without a
        price only.
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
        """Run a message and keep its effects here; its logs are collected with indices.

        The first index is 0 unless said otherwise. After an exception, those of `call`,
        nothing has changed.
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
        """A call by the system itself; None, and nothing done, where there is no code."""

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

        `gas_used` and `da_footprint` are what the block has used before, 0 if left out.
        `InvalidTransaction` names the index of the first that may not stand in the block:
        nothing of it is applied, those before it are. So does `OverBudget` for the first
        that takes more than the allowance has left.
        """

    def take(self, number: int) -> Changes:
        """What changed since the last take. The overlay keeps answering with it.

        `number`, from `Batch.draw`, is the generation of every life that began since.
        """

@final
class Outcome:
    """How a run ended. A revert or a failure of the VM is a result like any other."""

    @property
    def status(self) -> Literal["success", "revert", "halt"]: ...
    @property
    def halt(self) -> str | None:
        """Why the VM gave up, in the words of other clients."""

    @property
    def gas_used(self) -> int: ...
    @property
    def max_gas_used(self) -> int:
        """Before refunds."""

    @property
    def output(self) -> bytes:
        """Returned data, revert data or the code of a created contract."""

    @property
    def quoted_output(self) -> bytes:
        """The output as a JSON text: a quote, 0x, two digits a byte, a quote."""

    @property
    def logs(self) -> tuple[Log, ...]: ...
    @property
    def collected(self) -> list[tuple[int, Log]] | None:
        """After `Overlay.run`: the logs with their indices, traced transfers included."""

@final
class Executed:
    """A transaction of a block, executed."""

    @property
    def gas_used(self) -> int: ...
    @property
    def logs(self) -> tuple[Log, ...]: ...
    @property
    def created(self) -> bytes | None: ...
    @property
    def l1_fee(self) -> int: ...
    @property
    def operator_fee(self) -> int: ...
    @property
    def da_footprint(self) -> int: ...
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
    """Threads for what takes long, shared by all who ask, in turn."""

    def __new__(
        cls, *, threads: int, capacity: int, begun: int | None = None, nice: int = ...
    ) -> Self:
        """So many `threads` run at once, and `capacity` jobs may wait to be begun.

        `begun` jobs are in progress at once, taking turns; as many as run if left out. There
        are 1 to 1024 of either; `nice` lowers their priority, by 0 to 19 and by 10 if left out.
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
        """Run a call as `Overlay.call` does; the overlay is given away with it.

        The thread never takes the interpreter's lock. `PoolFull` when too many wait, or so
        many that it would begin too late; the overlay is gone all the same.
        """

    def submit_work(
        self,
        number: int,
        work: Callable[..., Any],
        *,
        address: int = ...,
        timeout_us: int | None = None,
    ) -> None:
        """Call `work(timeout_us=…)` on a thread, with what is left of the time then.

        What it runs of the engine ends when the work is cancelled or late, and takes turns.
        """

    def cancel(self, number: int) -> None:
        """Nobody wants this any more: it is stopped, or not begun."""

    def close(self) -> None:
        """Stop everything and begin nothing more; waits up to a second for the threads."""

    def fileno(self) -> int:
        """A descriptor that is readable while there are results."""

    def take(self) -> list[tuple[int, Any, bool]]:
        """What is done since: its number, and what came of it.

        That is an outcome or what the work returned, and true; else the exception, and false.
        """

    @property
    def waiting(self) -> int: ...
