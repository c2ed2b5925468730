"""A dev chain whose blocks a test makes by hand, with the L1 attributes deposit.

Every transaction is also executed on a separate overlay. Tests compare the results with the
responses of methods.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from foreblock._engine import (
    Env,
    Header,
    Message,
    Store,
    Transaction,
    deposit_transaction,
    keccak256,
    sign_transaction,
)
from foreblock.clock import DrivenClock
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.rules.execution import environment, start_block
from foreblock.ledger.rules.header_rules import base_fee_after
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.ledger.storage.chain_head import rules_of
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.sequencer.dev_genesis import dev_genesis
from foreblock.settings import ChainSettings
from foreblock.types import Base, Flashblock
from support.executing import Charged, Executed, charge
from support.payloads.dev_state import ACCOUNTS, COINBASE, DEPOSITOR, Attributes
from support.servers.asking import Asker, asker

CHAIN_ID: Final = 31337
GWEI: Final = 10**9
ATTRIBUTES: Final = Attributes()


@dataclass(frozen=True)
class ExecutedTransaction:
    """A transaction and its outcome."""

    transaction: Transaction
    charged: Charged
    block: int
    place: int

    @property
    def executed(self) -> Executed:
        return self.charged.executed

    @property
    def hash(self) -> str:
        return "0x" + self.transaction.hash.hex()


class PayingChain:
    """A chain and the block in progress."""

    def __init__(self, folder: Path, attributes: Attributes = ATTRIBUTES) -> None:
        self.store = Store(str(folder), write=True)
        begin_chain(self.store, dev_genesis(ChainSettings()))
        self.clock = DrivenClock(monotonic_ns=10**12)
        self.writer = LedgerWriter(self.store, self.clock)
        self.block: BlockInProgress | None = None
        self.attributes = attributes
        self.ran: list[ExecutedTransaction] = []
        self._view = self.store.view()
        self._overlay = self._view.state(0).overlay()
        self._nonces: dict[int, int] = {}

    def close(self) -> None:
        self.writer.close()
        self._view.close()
        self.store.close()

    @property
    def hash(self) -> str:
        """Of the pending block."""
        assert self.block is not None
        assert self.block.header is not None
        return "0x" + self.block.header.hash.hex()

    def begin(self) -> Flashblock:
        """Seal the block in progress, if any, and begin the next one with its deposit."""
        former = self.block
        if former is None:
            parent = self.writer.latest
            self.block = self.writer.begin(self._base(parent), parent.hash[:8])
        else:
            parent = self.writer.header_if_sealed(former)
            base = self._base(parent)
            self.block = self.writer.begin_next(former, parent, base, parent.hash[:8])
        rules = self.block.rules
        start_block(self._overlay, self._env(self.block), self.block.empty, rules, rules)
        self._run(self._deposit(parent))
        if former is None:
            return self.writer.extend(self.block)
        return self.writer.seal_and_extend(former, parent, self.block)

    def extend(self, *transactions: Transaction) -> list[ExecutedTransaction]:
        """Add the next index of the block, with these transactions."""
        assert self.block is not None, "begin it first"
        ran = [self._run(transaction) for transaction in transactions]
        self.writer.extend(self.block)
        return ran

    def signed(
        self,
        to: bytes | None,
        value: int = 0,
        data: bytes = b"",
        who: int = 0,
        **fields: Any,  # noqa: ANN401, of a message
    ) -> Transaction:
        """Sign the next transaction of an account."""
        kind = fields.pop("type", 2)
        fees = {"max_fee_per_gas": 100 * GWEI, "max_priority_fee_per_gas": GWEI}
        message = Message(
            sender=ACCOUNTS[who].address, to=to, value=value, data=data,
            **{"gas": 500_000} | (fees if kind in (2, 4) else {}) | fields,
        )  # fmt: skip
        nonce = self._nonces.get(who, 0)
        self._nonces[who] = nonce + 1
        return sign_transaction(message, kind, CHAIN_ID, nonce, ACCOUNTS[who].secret)

    def _run(self, transaction: Transaction) -> ExecutedTransaction:
        assert self.block is not None
        place, base_fee = self.block.count, self.block.base.base_fee_per_gas
        charged = charge(self._overlay, self._env(self.block), transaction, base_fee)
        self.block.run([transaction])
        ran = ExecutedTransaction(transaction, charged, self.block.number, place)
        self.ran.append(ran)
        return ran

    def _env(self, block: BlockInProgress) -> Env:
        return environment(block.empty, block.rules, self.writer.profile)

    def _base(self, parent: Header) -> Base:
        rules = rules_of(parent, 0, self.writer.profile)
        return Base(
            parent_hash=parent.hash,
            parent_beacon_block_root=keccak256(b"beacon" + parent.hash),
            prev_randao=keccak256(b"randao" + parent.hash),
            fee_recipient=COINBASE,
            block_number=parent.number + 1,
            gas_limit=parent.gas_limit,
            timestamp=parent.timestamp + 2,
            extra_data=parent.extra_data,
            base_fee_per_gas=base_fee_after(parent, rules, rules, self.writer.profile),
        )

    def _deposit(self, parent: Header) -> Transaction:
        return deposit_transaction(
            source_hash=keccak256(b"source" + parent.hash),
            sender=DEPOSITOR,
            to=L1_BLOCK,
            mint=0,
            value=0,
            gas_limit=1_000_000,
            input=self.attributes.call_data(),
        )


@contextmanager
def paying_chain(folder: Path) -> Iterator[PayingChain]:
    """A chain whose first block has begun."""
    chain = PayingChain(folder)
    chain.begin()
    try:
        yield chain
    finally:
        chain.close()


@contextmanager
def client_of(chain: PayingChain, **options: Any) -> Iterator[Asker]:  # noqa: ANN401, as in asker
    """A client of a service that reads the chain."""
    with asker(Ledger(chain.store, clock=chain.clock), **options) as client:
        yield client
