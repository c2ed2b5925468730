"""The initial state of a dev chain, for calls and changes without a store."""

from dataclasses import dataclass, field
from typing import Any

from foreblock._engine import (
    Env,
    Message,
    Outcome,
    Overlay,
    Transaction,
    deposit_transaction,
)
from foreblock.ledger.genesis.genesis_file import Genesis
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.sequencer.dev_genesis import dev_genesis
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from foreblock.settings import ChainSettings
from support.executing import Executed, execute
from support.payloads.solidity import call_data, decode

ACCOUNTS = dev_accounts(TEST_MNEMONIC, 10)
ALICE, BOB, CAROL = (each.address for each in ACCOUNTS[:3])
DEPOSITOR = bytes.fromhex("deaddeaddeaddeaddeaddeaddeaddeaddead0001")
COINBASE = bytes.fromhex("4200000000000000000000000000000000000011")
GENESIS = dev_genesis(ChainSettings())


def number(address: bytes) -> int:
    """An address as a word of Solidity."""
    return int.from_bytes(address)


@dataclass(frozen=True)
class Attributes:
    """The contents of the attributes deposit; all values differ from each other."""

    base_fee_scalar: int = 2_269
    blob_base_fee_scalar: int = 1_055_762
    sequence_number: int = 3
    timestamp: int = 1_767_225_700
    number: int = 25_825_143
    base_fee: int = 184_831_724
    blob_base_fee: int = 11_819_775
    hash: bytes = b"\x44" * 32
    batcher: bytes = b"\xba" * 20
    operator_fee_scalar: int = 71
    operator_fee_constant: int = 1_000_003
    da_footprint_gas_scalar: int = 148

    def call_data(self) -> bytes:
        """Encode the Jovian form: the selector, then packed big-endian fields."""
        return (
            bytes.fromhex("3db6be2b")
            + self.base_fee_scalar.to_bytes(4)
            + self.blob_base_fee_scalar.to_bytes(4)
            + self.sequence_number.to_bytes(8)
            + self.timestamp.to_bytes(8)
            + self.number.to_bytes(8)
            + self.base_fee.to_bytes(32)
            + self.blob_base_fee.to_bytes(32)
            + self.hash
            + self.batcher.rjust(32, b"\0")
            + self.operator_fee_scalar.to_bytes(4)
            + self.operator_fee_constant.to_bytes(8)
            + self.da_footprint_gas_scalar.to_bytes(2)
        )


def attributes_deposit(attributes: Attributes) -> Transaction:
    return deposit_transaction(
        source_hash=b"\x01" * 32,
        sender=DEPOSITOR,
        to=L1_BLOCK,
        mint=0,
        value=0,
        gas_limit=1_000_000,
        input=attributes.call_data(),
    )


@dataclass
class DevState:
    """Block 1 of a dev chain, for calls of any kind."""

    genesis: Genesis = GENESIS
    overlay: Overlay = field(default_factory=Overlay.empty)

    def __post_init__(self) -> None:
        for address, account in self.genesis.accounts.items():
            self.overlay.set(
                address,
                balance=account.balance,
                nonce=account.nonce,
                code=account.code,
                state=account.storage,
            )
        self.env = Env(
            rules=self.genesis.rules.engine_name,
            chain_id=self.genesis.profile.chain_id,
            number=1,
            timestamp=self.genesis.timestamp + 2,
            coinbase=COINBASE,
            gas_limit=self.genesis.gas_limit,
            base_fee=self.genesis.base_fee or 0,
            prevrandao=b"\x5a" * 32,
        )

    def message(self, to: bytes, data: bytes, sender: bytes = ALICE, value: int = 0) -> Message:
        return Message(sender=sender, to=to, data=data, value=value, gas=100_000_000, gas_price=0)

    def call(
        self,
        to: bytes,
        signature: str,
        *values: Any,  # noqa: ANN401, any shape
        sender: bytes = ALICE,
        value: int = 0,
    ) -> Outcome:
        """The outcome of a call without effects."""
        message = self.message(to, call_data(signature, *values), sender, value)
        return self.overlay.call(self.env, message, check_base_fee=False)

    def ask(self, to: bytes, signature: str, *values: Any, shape: Any = int) -> Any:  # noqa: ANN401, any shape
        """Return the result of a function."""
        outcome = self.call(to, signature, *values)
        assert outcome.status == "success", outcome.output
        return decode(shape, outcome.output)

    def run(
        self,
        to: bytes,
        signature: str,
        *values: Any,  # noqa: ANN401, any shape
        sender: bytes = ALICE,
        value: int = 0,
    ) -> Outcome:
        """The outcome of a call whose effects are kept."""
        return self.send(to, call_data(signature, *values), sender=sender, value=value)

    def send(self, to: bytes, data: bytes, sender: bytes = ALICE, value: int = 0) -> Outcome:
        message = self.message(to, data, sender, value)
        return self.overlay.run(self.env, message, check_base_fee=False)

    def deposit(self, attributes: Attributes) -> Executed:
        """The attributes deposit, executed as transaction 0."""
        (executed,) = execute(self.overlay, self.env, [attributes_deposit(attributes)])
        return executed
