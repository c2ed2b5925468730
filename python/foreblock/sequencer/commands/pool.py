"""Commands about accounts, the pool and the console output of a chain.

A transaction without a signature is a deposit on an OP chain (`ledger.rules.transaction_rules`):
any sender, no fees, and every follower can verify it. It has only the value, data, gas and nonce
of the request. On a chain with Ethereum's rules it is of type 2, and names its sender where others
have a signature; it pays fees, and followers accept it if the genesis says that the chain has such
transactions (`unsignedTransactions`).
"""

from typing import Final

from foreblock.bus.commands import (
    DropTransactions,
    Impersonate,
    ImpersonateAll,
    SendUnsigned,
    SetConsoleOutput,
)
from foreblock.errors import NoSigner, PoolRefusal, RefusedCommand
from foreblock.ledger.rules.transaction_rules import unsigned_source
from foreblock.sequencer.attributes import derive
from foreblock.sequencer.commands.execution import executes
from foreblock.sequencer.sequencer import Sequencer
from foreblock.types import Message, Transaction, deposit_transaction, unsigned_transaction

MOST_IMPERSONATED: Final = 1_000  # accounts; they are in a row that many commits write
HEADROOM: Final = 2  # times the base fee, of a transaction without a fee


@executes(Impersonate)
def impersonate(command: Impersonate, sequencer: Sequencer) -> None:
    """Accept transactions of an account without a signature, or stop doing so."""
    before, who = sequencer.mining.state.impersonated, command.address
    if command.is_on == (who in before):
        return
    if command.is_on and len(before) >= MOST_IMPERSONATED:
        raise RefusedCommand(
            f"{len(before)} accounts are impersonated, which is the most; "
            "anvil_autoImpersonateAccount impersonates all"
        )
    after = (*before, who) if command.is_on else tuple(each for each in before if each != who)
    sequencer.mining.change(impersonated=after)
    sequencer.changes.mark()


@executes(ImpersonateAll)
def impersonate_all(command: ImpersonateAll, sequencer: Sequencer) -> None:
    """Accept transactions of every account without a signature, or stop doing so."""
    if sequencer.mining.state.impersonates_all != command.is_on:
        sequencer.mining.change(impersonates_all=command.is_on)
        sequencer.changes.mark()


@executes(SendUnsigned)
def send_unsigned(command: SendUnsigned, sequencer: Sequencer) -> bytes | str:
    """Add a transaction without a signature; returns its hash, or the reason of the pool."""
    state, sender = sequencer.mining.state, command.sender
    if not (command.is_allowed or state.impersonates_all or sender in state.impersonated):
        raise RefusedCommand(str(NoSigner()))
    try:
        transaction = _unsigned(command, sequencer)
        sequencer.submit(transaction, may_replace=False)
    except PoolRefusal as refusal:
        return str(refusal)
    sequencer.run_immediate()
    return transaction.hash


def _unsigned(command: SendUnsigned, sequencer: Sequencer) -> Transaction:
    """The transaction of a command, with the next nonce of its sender if it has none."""
    sender, profile = command.sender, sequencer.builder.writer.profile
    nonce = sequencer.next_nonce(sender) if command.nonce is None else command.nonce
    if profile.unsigned:
        message = _message(command, sequencer.builder.base.base_fee_per_gas)
        return unsigned_transaction(message, profile.chain_id, nonce)
    source = derive(sequencer.mining.chain.seed, "unsigned", nonce, sender)
    return deposit_transaction(
        source_hash=unsigned_source(source, nonce),
        sender=sender,
        to=command.to,
        mint=0,
        value=int.from_bytes(command.value),
        gas_limit=command.gas,
        input=command.data,
    )


def _message(command: SendUnsigned, base_fee: int) -> Message:
    fee, tip = command.max_fee_per_gas, command.max_priority_fee_per_gas or 0
    return Message(
        sender=command.sender,
        to=command.to,
        value=int.from_bytes(command.value),
        data=command.data,
        gas=command.gas,
        max_fee_per_gas=HEADROOM * base_fee + tip if fee is None else fee,
        max_priority_fee_per_gas=tip,
        access_list=[(address, list(slots)) for address, slots in command.access_list],
    )


@executes(DropTransactions)
def drop_transactions(command: DropTransactions, sequencer: Sequencer) -> list[bytes]:
    """Drop transactions that wait: one, those of a sender, or all; returns their hashes."""
    return sequencer.drop(command.hash, command.sender)


@executes(SetConsoleOutput)
def set_console_output(command: SetConsoleOutput, sequencer: Sequencer) -> None:
    """Turn console output on or off; None leaves a setting unchanged."""
    state = sequencer.mining.state
    sequencer.mining.change(
        prints=state.prints if command.is_on is None else command.is_on,
        prints_traces=state.prints_traces if command.traces is None else command.traces,
    )
    sequencer.changes.mark()
