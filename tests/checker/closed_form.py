"""The effects of the restricted load's transactions, without an EVM.

The load has two kinds of transaction: plain transfers, which cost 21,000 gas and have no logs, and
transfers of one token. The execution gas of the latter is a constant that is learned from the first
flashblock with one; then everything follows from the bytes of the transactions: gas, receipts, fees
and balances.
"""

from dataclasses import dataclass

from checker.fees import TRANSACTION_GAS, L1Terms, gas_used, intrinsic_gas
from checker.keccak import keccak256
from checker.receipts import Log
from checker.state import Changes
from checker.transactions import Payment

# OP stack, predeploys: the recipients of fees.
SEQUENCER_VAULT = bytes.fromhex("4200000000000000000000000000000000000011")
BASE_FEE_VAULT = bytes.fromhex("4200000000000000000000000000000000000019")
L1_FEE_VAULT = bytes.fromhex("420000000000000000000000000000000000001a")
OPERATOR_VAULT = bytes.fromhex("420000000000000000000000000000000000001b")

# ERC-20.
TRANSFER_SELECTOR = keccak256(b"transfer(address,uint256)")[:4]
TRANSFER_EVENT = keccak256(b"Transfer(address,address,uint256)")

# EIP-2200, EIP-2929: setting a slot that was zero costs 20,000 gas, another one 2,900.
FIRST_TOKENS_GAS = 20_000 - 2_900


class Unforeseen(ValueError):
    """A transaction that is not from the load."""


@dataclass(frozen=True, slots=True)
class TokenTransfer:
    """A call of the token that moves an amount."""

    to: bytes
    amount: int

    def log(self, token: bytes, sender: bytes) -> Log:
        """The log of the transfer."""
        topics = (TRANSFER_EVENT, sender.rjust(32, b"\0"), self.to.rjust(32, b"\0"))
        return Log(token, topics, self.amount.to_bytes(32))


@dataclass(frozen=True, slots=True)
class BlockTerms:
    """Values common to all transactions of a block."""

    chain_id: int
    token: bytes
    base_fee: int
    l1: L1Terms


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a transaction beside its changes of state."""

    gas: int
    logs: tuple[Log, ...]
    compressed_size: int = 0  # of a deposit, which is free on L1


def read_transfer(payment: Payment, terms: BlockTerms) -> TokenTransfer | None:
    """The token transfer of a payment, or None if it only moves ether."""
    data = payment.data
    if payment.chain_id != terms.chain_id:
        raise Unforeseen("it is for another chain")
    if payment.to != terms.token:
        if data or payment.gas_limit < TRANSACTION_GAS:
            raise Unforeseen("a transfer with data, or with too little gas")
        return None
    if payment.value or len(data) != 68 or data[:4] != TRANSFER_SELECTOR or any(data[4:16]):
        raise Unforeseen("a call of the token that is no transfer")
    transfer = TokenTransfer(data[16:36], int.from_bytes(data[36:]))
    if not transfer.amount or transfer.to in (payment.sender, bytes(20)):
        raise Unforeseen("a token transfer of zero, to the zero address or to its sender")
    return transfer


def token_gas(payments: list[Payment], terms: BlockTerms, state: Changes, gas: int) -> int | None:
    """The execution gas of one token transfer, if these payments together used `gas`.

    None without a token transfer. `state` is the state before them and is not changed.
    """
    known, count, served = 0, 0, set[bytes]()
    for payment in payments:
        transfer = read_transfer(payment, terms)
        known += intrinsic_gas(payment.data)
        if transfer is not None:
            count += 1
            if transfer.to not in served and not state.get("token", transfer.to):
                known += FIRST_TOKENS_GAS
            served.add(transfer.to)
    return (gas - known) // count if count else None


def apply(payment: Payment, terms: BlockTerms, state: Changes, token_gas: int) -> Effect:
    """Apply a payment; `Unforeseen` if it cannot have been included."""
    transfer = read_transfer(payment, terms)
    execution, logs = 0, tuple[Log, ...]()
    if transfer is not None:
        first = not state.get("token", transfer.to)
        execution = token_gas + (FIRST_TOKENS_GAS if first else 0)
        logs = (transfer.log(terms.token, payment.sender),)
    gas = gas_used(payment.data, execution)
    _pay(payment, terms, state, gas)
    state.add("balance", payment.sender, -payment.value)
    state.add("balance", payment.to, payment.value)
    if transfer is not None:
        state.add("token", payment.sender, -transfer.amount)
        state.add("token", transfer.to, transfer.amount)
        # A slot that becomes zero gives a refund, which is not part of the constant.
        if state.get("token", payment.sender) <= 0:
            raise Unforeseen("it spends the last of the sender's tokens")
    if state.get("balance", payment.sender) < 0:
        raise Unforeseen("it spends more than its sender has")
    return Effect(gas, logs, payment.compressed_size)


def _pay(payment: Payment, terms: BlockTerms, state: Changes, gas: int) -> None:
    """Charge the nonce and all fees."""
    sender, price = payment.sender, payment.price(terms.base_fee)
    if payment.nonce != state.get("nonce", sender):
        raise Unforeseen(f"nonce {payment.nonce} where {state.get('nonce', sender)} is next")
    if price < terms.base_fee or gas > payment.gas_limit:
        raise Unforeseen("it pays too little, or runs out of gas")
    state.add("nonce", sender, 1)
    l1_fee, operator_fee = terms.l1.fee(payment.compressed_size), terms.l1.operator_fee(gas)
    state.add("balance", sender, -(gas * price + l1_fee + operator_fee))
    state.add("balance", SEQUENCER_VAULT, gas * (price - terms.base_fee))
    state.add("balance", BASE_FEE_VAULT, gas * terms.base_fee)
    state.add("balance", L1_FEE_VAULT, l1_fee)
    state.add("balance", OPERATOR_VAULT, operator_fee)
