"""One block under construction, replayed from its flashblocks in closed form.

Two values are learned: the gas of the attributes deposit, which is alone in index 0, and once per
chain that of a token transfer. Everything else is computed, including all values that depend on
them.
"""

from collections.abc import Mapping

from checker.chain import Chain
from checker.closed_form import BlockTerms, Effect, Unforeseen, apply, token_gas
from checker.fees import read_terms
from checker.header import Header
from checker.keccak import keccak256
from checker.messages import Message, announced_header
from checker.ordered_trie import OrderedTrie
from checker.place import Included, Place, Sealed
from checker.receipts import NO_BLOOM, bloom, receipt, unite
from checker.state import Changes
from checker.transactions import (
    DEPOSIT,
    DYNAMIC_FEE,
    Deposit,
    Payment,
    Transaction,
    decode_deposit,
    decode_payment,
)

DEPOSITOR = bytes.fromhex("deaddeaddeaddeaddeaddeaddeaddeaddead0001")
L1_BLOCK = bytes.fromhex("4200000000000000000000000000000000000015")


class Learned:
    """Values learned from a chain's feed."""

    def __init__(self, chain: Chain, senders: Mapping[bytes, bytes]) -> None:
        """`senders` has the signer of each transaction, by hash."""
        self.chain = chain
        self.senders = senders
        self.token_gas: int | None = None
        self.withdrawals_root: bytes | int | None = None  # unchanged by any load


class Job:
    """A block in progress."""

    def __init__(
        self, message: Message, base: dict[str, str], parent: Sealed, learned: Learned
    ) -> None:
        self.payload_id = message.payload_id
        self.number = message.number
        self.base = base
        self.parent = parent
        self.places: list[Place] = []
        self._learned = learned
        self._terms: BlockTerms | None = None
        # One attributes deposit per block, the first in block 1.
        self._deposit_nonce = message.number - 1

        # Of the messages so far.
        self._state = parent.state
        self._transactions: list[Included] = []
        self._transactions_trie = OrderedTrie()
        self._receipts_trie = OrderedTrie()
        self._gas = 0
        self._logs = 0
        self._footprint = 0
        self._bloom = NO_BLOOM

    def take(self, message: Message) -> None:
        """Apply a message; `ValueError` if it cannot come from the load."""
        raws = message.raws
        self._transactions_trie.extend(raws)
        changes = Changes(self._state)
        try:
            fresh = self._decode(raws)
            self._carry_out(fresh, changes, int(message.diff["gas_used"], 16))
        finally:
            self._state = changes.done()

    def place(self, message: Message, order: int, received_ns: int) -> Place:
        """The place of the chain after an applied message."""
        root = self._transactions_trie.root()
        return Place(
            order=order,
            received_ns=received_ns,
            number=self.number,
            index=message.index,
            header=announced_header(self.base, message.diff, root),
            hash=message.hash,
            transactions=self._transactions,
            count=len(self._transactions),
            deposit_nonce=self._deposit_nonce,
            state=self._state,
            parent=self.parent,
            terms=self._terms,
        )

    def expected_header(self, header: Header) -> dict[str, bytes | int]:
        """The expected header fields for the transactions so far."""
        learned = self._learned
        if learned.withdrawals_root is None:
            learned.withdrawals_root = header["withdrawalsRoot"]
        return {
            "number": self.number,
            "stateRoot": bytes(32),
            "receiptsRoot": self._receipts_trie.root(),
            "logsBloom": self._bloom,
            "gasUsed": self._gas,
            "blobGasUsed": self._footprint,
            "withdrawalsRoot": learned.withdrawals_root,
        }

    def _decode(self, raws: list[bytes]) -> list[Transaction]:
        fresh: list[Transaction] = []
        senders = self._learned.senders
        for raw in raws:
            hash = keccak256(raw)  # noqa: A001, its name
            if raw[:1] == bytes([DEPOSIT]):
                fresh.append(decode_deposit(raw, hash))
            elif hash in senders:
                fresh.append(decode_payment(raw, hash, senders[hash]))
            else:
                raise Unforeseen(f"no recorded sender of 0x{hash.hex()}")
        return fresh

    def _carry_out(self, fresh: list[Transaction], changes: Changes, gas: int) -> None:
        if self._terms is None:
            self._begin(fresh, changes, gas)
            return
        payments = [each for each in fresh if isinstance(each, Payment)]
        if len(payments) != len(fresh):
            raise Unforeseen("a deposit after index 0")
        learned, terms = self._learned, self._terms
        if learned.token_gas is None:
            learned.token_gas = token_gas(payments, terms, changes, gas - self._gas)
        for payment in payments:
            effect = apply(payment, terms, changes, learned.token_gas or 0)
            self._include(payment, effect)
            self._footprint += terms.l1.footprint(effect.compressed_size)

    def _begin(self, fresh: list[Transaction], changes: Changes, gas: int) -> None:
        """Index 0: the attributes deposit and its fee parameters."""
        if len(fresh) != 1 or not isinstance(fresh[0], Deposit):
            raise Unforeseen("index 0 holds something else than one deposit")
        deposit = fresh[0]
        if (deposit.sender, deposit.to, deposit.mint, deposit.value) != (DEPOSITOR, L1_BLOCK, 0, 0):
            raise Unforeseen("the deposit in index 0 does not bring the attributes")
        chain = self._learned.chain
        base_fee = int(self.base["base_fee_per_gas"], 16)
        self._terms = BlockTerms(chain.chain_id, chain.token, base_fee, read_terms(deposit.data))
        self._include(deposit, Effect(gas, ()))
        counted = changes.get("nonce", DEPOSITOR)
        changes.add("nonce", DEPOSITOR, self._deposit_nonce + 1 - counted)

    def _include(self, transaction: Transaction, effect: Effect) -> None:
        """Add a transaction with its receipt."""
        self._transactions.append(Included(transaction, effect, self._gas, self._logs))
        self._gas += effect.gas
        self._logs += len(effect.logs)
        deposit = isinstance(transaction, Deposit)
        nonce = self._deposit_nonce if deposit else -1
        kind = DEPOSIT if deposit else DYNAMIC_FEE
        self._receipts_trie.extend([receipt(kind, self._gas, effect.logs, nonce)])
        if effect.logs:
            self._bloom = unite(self._bloom, bloom(effect.logs))
