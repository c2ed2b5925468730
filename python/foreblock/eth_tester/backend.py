"""`Backend`: the chain of an `eth_tester.EthereumTester`, as its own `PyEVMBackend` is.

A transaction is in the pending block as soon as it is sent; `mine_blocks` seals the block.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

from eth_keys.datatypes import PrivateKey
from eth_tester.backends.base import BaseChainBackend
from eth_tester.exceptions import (
    BlockNotFound,
    SnapshotNotFound,
    TransactionFailed,
    TransactionNotFound,
)
from eth_tester.exceptions import ValidationError as BadRequest
from eth_utils import ValidationError
from rlp.exceptions import DecodingError

from foreblock.client.typed_requests import to_json
from foreblock.dev_chain import ChainState, Checkpoint, DevChain
from foreblock.errors import (
    Halted,
    NotHere,
    PoolRefusal,
    RefusedCall,
    RejectedTransaction,
    Reverted,
)
from foreblock.eth_tester.transactions import (
    CHAIN_ID,
    call_object,
    genesis_account,
    signed,
    with_fees,
    with_signature,
)
from foreblock.eth_tester.values import (
    Fields,
    Json,
    block_values,
    receipt_values,
    transaction_values,
)
from foreblock.primitives import format_data, parse_data, parse_quantity
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.types import decode_transaction

BlockName = int | str

ACCOUNTS: Final = 10
BALANCE: Final = 1_000_000 * 10**18
GAS_LIMIT: Final = 30_029_122
HD_PATH: Final = "m/44'/60'/0'"
MOST_FEES: Final = 1024  # blocks of one fee history
NO_COINBASE: Final = bytes(20)
ERROR_SELECTOR: Final = bytes.fromhex("08c379a0")  # of Error(string)


class Backend(BaseChainBackend):  # type: ignore[misc] # eth-tester may not be installed
    """A chain with the accounts and the chain id of `PyEVMBackend`, which is `chain`."""

    def __init__(
        self,
        genesis_parameters: Fields | None = None,
        genesis_state: Mapping[bytes, Fields] | None = None,
        *,
        mnemonic: str | None = None,
        hd_path: str | None = None,
        fork: str = "newest",
    ) -> None:
        """Begin a chain.

        `genesis_parameters` may have `gas_limit` and `timestamp`. `genesis_state` has the balance,
        nonce, code and storage of accounts, by address; as many keys are known, the first ones or
        those of the mnemonic.
        """
        self._genesis: Final[Fields] = self.generate_genesis_params(genesis_parameters)
        made = genesis_state or self.generate_genesis_state(mnemonic=mnemonic, hd_path=hd_path)
        self._state: Final = dict[bytes, Fields](made)
        self._keys: Final = _keys(mnemonic, hd_path, len(self._state))
        self._fork: Final = fork
        self.reset_to_genesis()

    @classmethod
    def from_mnemonic(
        cls,
        mnemonic: str,
        genesis_state_overrides: Fields | None = None,
        num_accounts: int | None = None,
        genesis_parameters: Fields | None = None,
        hd_path: str | None = None,
    ) -> Self:
        """Begin a chain with the accounts of a mnemonic."""
        state = cls.generate_genesis_state(genesis_state_overrides, num_accounts, mnemonic, hd_path)
        return cls(genesis_parameters, state, mnemonic=mnemonic, hd_path=hd_path)

    @staticmethod
    def generate_genesis_params(overrides: Fields | None = None) -> dict[str, int]:
        """The parameters of block 0."""
        return _overridden({"gas_limit": GAS_LIMIT, "timestamp": int(time.time())}, overrides)

    @staticmethod
    def generate_genesis_state(
        overrides: Fields | None = None,
        num_accounts: int | None = None,
        mnemonic: str | None = None,
        hd_path: str | None = None,
    ) -> dict[bytes, Json]:
        """The accounts of block 0, each with a million ether unless it is overridden."""
        state = _overridden({"balance": BALANCE, "storage": {}, "code": b"", "nonce": 0}, overrides)
        keys = _keys(mnemonic, hd_path, num_accounts or ACCOUNTS)
        return {_address(key): state for key in keys}

    def reset_to_genesis(self) -> None:
        """Begin the chain again."""
        alloc = {format_data(name): genesis_account(each) for name, each in self._state.items()}
        with TemporaryDirectory() as folder:
            file = Path(folder, "alloc.json")
            file.write_text(json.dumps(alloc), "utf-8")
            self.chain = DevChain(
                "ethereum",
                self._fork,
                mode="manual",
                history=0,
                chain_id=CHAIN_ID,
                order="fifo",
                alloc=str(file),
                **self._genesis,
            )
        self.account_keys = self._keys
        self._snapshots: list[Checkpoint] = []

    # --- Blocks and time ---------------------------------------------------------------

    def take_snapshot(self) -> int:
        self._snapshots.append(self.chain.snapshot())
        return len(self._snapshots) - 1

    def revert_to_snapshot(self, snapshot: int) -> None:
        """Return to a snapshot, again and again until the chain returns to an earlier one."""
        if not self._snapshots[snapshot].revert():
            raise SnapshotNotFound(f"the chain has returned to one before snapshot {snapshot}")
        self._snapshots[snapshot] = self.chain.snapshot()

    def time_travel(self, to_timestamp: int) -> int:
        """Seal the pending block, so that the next one has this time."""
        self.chain.rpc("evm_setNextBlockTimestamp", to_timestamp - 1)
        self.chain.seal()
        return to_timestamp

    def mine_blocks(self, num_blocks: int = 1, coinbase: bytes = NO_COINBASE) -> tuple[bytes, ...]:
        """Seal the pending block and those after it; returns their hashes."""
        first = self._height + 1
        if coinbase == NO_COINBASE:
            self.chain.seal(num_blocks)
        else:
            self.chain.restart_block()
            self.chain.rpc("anvil_setCoinbase", format_data(coinbase))
            self.chain.seal(num_blocks)
            self.chain.rpc("anvil_setCoinbase", format_data(NO_COINBASE))
        numbers = range(first, first + num_blocks)
        return tuple(self._header(number)["hash"] for number in numbers)

    @property
    def _height(self) -> int:
        return parse_quantity(self.chain.rpc("eth_blockNumber"))

    # --- Accounts ----------------------------------------------------------------------

    def get_accounts(self) -> tuple[bytes, ...]:
        return tuple(map(_address, self.account_keys))

    def add_account(self, private_key: bytes) -> None:
        self.account_keys = (*self.account_keys, PrivateKey(private_key))

    def get_nonce(self, account: bytes, block_number: BlockName = "latest") -> int:
        with _translated():
            return self._at(block_number).nonce(account)

    def get_balance(self, account: bytes, block_number: BlockName = "latest") -> int:
        with _translated():
            return self._at(block_number).balance(account)

    def get_code(self, account: bytes, block_number: BlockName = "latest") -> bytes:
        with _translated():
            return bytes(self._at(block_number).code(account))

    def get_storage(self, account: bytes, slot: int, block_number: BlockName = "latest") -> int:
        with _translated():
            return self._at(block_number).storage(account, slot)

    def _at(self, block: BlockName) -> ChainState:
        return self.chain.at(self._named(block))

    def _named(self, block: BlockName) -> BlockName:
        """The name of a block for the chain. Raises `BlockNotFound`."""
        if block in {"latest", "safe", "finalized"}:
            return "latest"
        if block in {"earliest", "pending"} or (isinstance(block, int) and block <= self._height):
            return block
        raise BlockNotFound(f"No block found for block number: {block}")

    # --- Blocks, transactions and receipts -----------------------------------------------

    def get_block_by_number(
        self,
        block_number: BlockName,
        full_transaction: bool = True,  # noqa: FBT001, FBT002, eth-tester's
    ) -> dict[str, Json]:
        name = to_json(self._named(block_number))
        found = self.chain.rpc("eth_getBlockByNumber", name, full_transaction)
        return block_values(found, self._height)

    def get_block_by_hash(
        self,
        block_hash: bytes,
        full_transaction: bool = True,  # noqa: FBT001, FBT002, eth-tester's
    ) -> dict[str, Json]:
        name, height = format_data(block_hash), self._height
        found = self.chain.rpc("eth_getBlockByHash", name, full_transaction)
        if found is None or parse_quantity(found["number"]) > height:
            raise BlockNotFound(f"No block found for block hash: {name}")
        return block_values(found, height)

    def _header(self, block_number: BlockName) -> dict[str, Json]:
        """A block without what its transactions contain."""
        return self.get_block_by_number(block_number, full_transaction=False)

    def get_base_fee(self, block_number: BlockName = "latest") -> int:
        base_fee: int = self._header(block_number)["base_fee_per_gas"]
        return base_fee

    def get_fee_history(
        self,
        block_count: int = 1,
        newest_block: BlockName = "latest",
        reward_percentiles: Sequence[int] = (),  # noqa: ARG002, there are no rewards
    ) -> dict[str, Json]:
        """The fees of the blocks below one, the newest first, as eth-tester wants them."""
        if not 1 <= block_count <= MOST_FEES:
            raise BadRequest(f"block_count must be between 1 and {MOST_FEES}")
        name = "latest" if newest_block == "pending" else newest_block
        newest: int = self._header(name)["number"]
        numbers = range(newest - 1, max(newest - 1 - block_count, -1), -1)
        blocks = [self._header(number) for number in numbers]
        return {
            "oldest_block": 1,
            "base_fee_per_gas": [each["base_fee_per_gas"] for each in blocks],
            "gas_used_ratio": [each["gas_used"] / each["gas_limit"] for each in blocks],
            "reward": [],
        }

    def get_transaction_by_hash(self, transaction_hash: bytes) -> dict[str, Json]:
        found = self._found("eth_getTransactionByHash", transaction_hash)
        return transaction_values(found, self._height)

    def get_transaction_receipt(self, transaction_hash: bytes) -> dict[str, Json]:
        found = self._found("eth_getTransactionReceipt", transaction_hash)
        return receipt_values(found, self._height)

    def _found(self, method: str, transaction_hash: bytes) -> Fields:
        name = format_data(transaction_hash)
        found: Fields | None = self.chain.rpc(method, name)
        if found is None:
            raise TransactionNotFound(f"No transaction found for transaction hash: {name}")
        return found

    # --- Transactions and calls ----------------------------------------------------------

    def send_transaction(self, transaction: Fields) -> bytes:
        """Sign a transaction and include it in the pending block. Raises `ValidationError`."""
        sender = transaction["from"]
        key = next((each for each in self.account_keys if _address(each) == sender), None)
        if key is None:
            raise BadRequest(f"the key of {format_data(sender)} is not known")
        fields = with_fees(transaction, self.get_base_fee())
        if "nonce" not in fields:
            fields = {**fields, "nonce": self.get_nonce(sender, "pending")}
        return self.send_raw_transaction(signed(fields, key.to_bytes()))

    def send_signed_transaction(self, transaction: Fields) -> bytes:
        """Include a transaction that has its signature. Raises `ValidationError`."""
        raw = with_signature(transaction)
        if decode_transaction(raw).sender != transaction["from"]:
            raise BadRequest("the signature is not that of these fields")
        return self.send_raw_transaction(raw)

    def send_raw_transaction(self, raw_transaction: bytes) -> bytes:
        """Include an encoded transaction. Raises `DecodingError`, `ValidationError`."""
        try:
            with _translated():
                sent: str = self.chain.rpc("eth_sendRawTransaction", format_data(raw_transaction))
        except RejectedTransaction as error:
            raise DecodingError(str(error), raw_transaction) from error
        self.chain.flashblock()
        if self.chain.rpc("eth_getTransactionReceipt", sent) is None:
            self.chain.rpc("anvil_dropTransaction", sent)
            raise ValidationError(f"{sent} is not the next of its sender, or the block is full")
        return parse_data(sent)

    def estimate_gas(self, transaction: Fields, block_number: BlockName = "latest") -> int:
        fields = {name: each for name, each in transaction.items() if name != "gas"}
        return parse_quantity(self._run("eth_estimateGas", fields, block_number))

    def call(self, transaction: Fields, block_number: BlockName = "latest") -> bytes:
        return parse_data(self._run("eth_call", transaction, block_number))

    def _run(self, method: str, transaction: Fields, block: BlockName) -> str:
        name = to_json(self._named(block))
        with _translated():
            output: str = self.chain.rpc(method, call_object(transaction), name)
            return output


def _address(key: PrivateKey) -> bytes:
    address: bytes = key.public_key.to_canonical_address()
    return address


def _keys(mnemonic: str | None, hd_path: str | None, count: int) -> tuple[PrivateKey, ...]:
    if mnemonic is None:
        return tuple(PrivateKey(number.to_bytes(32)) for number in range(1, count + 1))
    accounts = dev_accounts(mnemonic, count, f"{hd_path or HD_PATH}/")
    return tuple(PrivateKey(each.secret) for each in accounts)


def _overridden(defaults: dict[str, Json], overrides: Fields | None) -> dict[str, Json]:
    given = dict(overrides or {})
    if unknown := sorted(given.keys() - defaults.keys()):
        raise ValueError(f"unknown fields of the genesis: {', '.join(unknown)}")
    return defaults | given


@contextmanager
def _translated() -> Iterator[None]:
    """Raise failures as `PyEVMBackend` does."""
    try:
        yield
    except Reverted as error:
        is_text = error.reason and error.output.startswith(ERROR_SELECTOR)
        raise TransactionFailed(error.reason if is_text else str(bytes(error.output))) from error
    except Halted as error:
        raise TransactionFailed(str(error)) from error
    except NotHere as error:
        raise BlockNotFound(str(error)) from error
    except (PoolRefusal, RefusedCall) as error:
        raise ValidationError(str(error)) from error
