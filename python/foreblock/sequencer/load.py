"""Generated load: transfers and token transfers at a constant rate.

The n-th transaction is the same for the same options. Signing takes longer than all the
rest, so it is done ahead in small portions, when there is time. The caller passes the time,
which determines how much is due.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from foreblock.clock import SECOND_NS
from foreblock.errors import InvalidArgument
from foreblock.ledger.rules.transaction_rules import DYNAMIC_FEE
from foreblock.sequencer.mnemonic import DevAccount
from foreblock.sequencer.predeploys import TOKEN
from foreblock.types import Message, Transaction, keccak256, sign_transaction

GWEI: Final = 10**9
PORTION: Final = 16  # transactions that are signed at once: a few milliseconds
AHEAD_SECONDS: Final = 2  # how much load is kept ready
BURST_SECONDS: Final = 1  # what was missed for longer is left out
RECIPIENTS: Final = 1_000  # besides the senders, so that state does not grow for ever

TRANSFER_GAS: Final = 21_000
TOKEN_GAS: Final = 80_000  # a first transfer to somebody takes some 52,000
FEE_CAP: Final = 1_000 * GWEI  # so that a base fee that rises does not end the load
_TRANSFER_SELECTOR: Final = bytes.fromhex("a9059cbb")  # transfer(address,uint256)


def first_of_load(accounts: int) -> int:
    """The first account that sends load; the first half of them is left to users."""
    return accounts // 2


class Mix(Struct, frozen=True):
    """The share of token transfers: `tokens` of each `of` transactions."""

    tokens: int = 1
    of: int = 2

    def is_token(self, number: int) -> bool:
        """Return True if the transaction of this number transfers a token."""
        return (number + 1) * self.tokens // self.of > number * self.tokens // self.of


class Load:
    """A stream of signed transactions from accounts whose keys are known."""

    def __init__(
        self, tps: int, accounts: Sequence[DevAccount], chain_id: int, mix: Mix | None = None
    ) -> None:
        """`InvalidArgument` without a rate or without accounts."""
        if tps < 1 or not accounts:
            raise InvalidArgument("load needs at least one transaction a second and one account")
        self._tps: Final = tps
        self._mix: Final = mix or Mix()
        self._chain_id: Final = chain_id
        self._accounts: Final = tuple(accounts)
        self._by_address: Final = {each.address: each for each in accounts}
        self.ready: deque[Transaction] = deque()
        self._nonces: dict[bytes, int] = {}  # the next one to sign with, if it is known
        self._signed = 0  # the number of the next transaction
        self._since_ns: int | None = None  # from when on transactions are due
        self._sent = 0  # since then, sent or left out

    @property
    def wants_to_sign(self) -> bool:
        """Return True if fewer transactions are signed than should be."""
        return len(self.ready) < self._tps * AHEAD_SECONDS

    def sign_some(self, next_nonce: Callable[[bytes], int]) -> None:
        """Sign a portion; `next_nonce` is called if the sender's nonce is not known yet."""
        for _ in range(PORTION):
            self.ready.append(self._sign(next_nonce))

    def due(self, now_ns: int) -> Iterator[Transaction]:
        """The transactions that are due by now and have been signed."""
        if self._since_ns is None:
            self._since_ns = now_ns
        wanted = (now_ns - self._since_ns) * self._tps // SECOND_NS
        self._sent = max(self._sent, wanted - self._tps * BURST_SECONDS)
        while self._sent < wanted and self.ready:
            self._sent += 1
            yield self.ready.popleft()

    @property
    def next_due_ns(self) -> int | None:
        """When a portion is due; None if it has to be signed first."""
        if self._since_ns is None or not self.ready:
            return None
        return self._since_ns + (self._sent + PORTION) * SECOND_NS // self._tps

    def start_again(self) -> None:
        """Forget what was signed: the chain was rewound, and nonces with it."""
        self.ready.clear()
        self._nonces.clear()

    def refused(self, transaction: Transaction) -> None:
        """The account has another user too: start again from its nonce."""
        sender = transaction.sender
        self._nonces.pop(sender, None)
        self.ready = deque(each for each in self.ready if each.sender != sender)

    def _sign(self, next_nonce: Callable[[bytes], int]) -> Transaction:
        number = self._signed
        self._signed += 1
        account = self._accounts[number % len(self._accounts)]
        nonce = self._nonces.get(account.address)
        if nonce is None:
            nonce = next_nonce(account.address)
        self._nonces[account.address] = nonce + 1
        message = self._message(account, number)
        return sign_transaction(message, DYNAMIC_FEE, self._chain_id, nonce, account.secret)

    def _message(self, account: DevAccount, number: int) -> Message:
        to, amount = _recipient(number), number + 1
        token = self._mix.is_token(number)
        return Message(
            sender=account.address,
            to=TOKEN if token else to,
            value=0 if token else amount,
            data=_TRANSFER_SELECTOR + to.rjust(32, b"\0") + amount.to_bytes(32) if token else b"",
            gas=TOKEN_GAS if token else TRANSFER_GAS,
            max_fee_per_gas=FEE_CAP,
            max_priority_fee_per_gas=(number % 10 + 1) * GWEI // 10,
        )


def _recipient(number: int) -> bytes:
    return keccak256(b"load" + (number * 7919 % RECIPIENTS).to_bytes(8))[12:]
