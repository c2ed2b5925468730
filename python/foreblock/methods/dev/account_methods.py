"""anvil_impersonateAccount, anvil_dropTransaction and others: senders without keys, and the pool.

An impersonated account sends without a signature. A transaction in a flashblock is no longer in
the pool, and cannot be dropped; if only sealed blocks are shown and a command seals them, it can
(`Sequencer.drop`).
"""

from collections.abc import Awaitable
from typing import Final

from msgspec import Raw

from foreblock.bus.commands import DropTransactions, Impersonate, ImpersonateAll
from foreblock.errors import NoSigner
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.blocks.receipts import read_hash
from foreblock.methods.dev.commanding import (
    execute_now_or_later,
    write_bool,
    write_true,
)
from foreblock.methods.dev.mining import SwitchParams
from foreblock.methods.dev.unlocked import UnlockedMethods
from foreblock.methods.params import Params, address, reader, take_none
from foreblock.methods.sequencing import Commands, Keys, is_impersonated, write_accounts
from foreblock.methods.shapes import write_data
from foreblock.methods.table import Family, Method, command


class ImpersonateParams(Params):
    """The arguments of a method about one account."""

    address: str


class PassphraseParams(Params):
    """The arguments of Ganache's methods; a passphrase and a duration are ignored."""

    address: str
    passphrase: str | None = None
    duration: int | str | None = None


_read_account = reader(ImpersonateParams)
_read_passphrase = reader(PassphraseParams)
_read_switch = reader(SwitchParams)


class ImpersonationMethods:
    """Methods about the accounts that may send."""

    def __init__(self, keys: Keys, commands: Commands) -> None:
        self._keys: Final = keys
        self._commands: Final = commands

    def request_accounts(self, view: LedgerView, raw: Raw) -> bytes:
        """The accounts that the service sends for, as wallets return them."""
        take_none(raw)
        return write_accounts(view, self._keys)

    def impersonate(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Accept transactions of this account without a signature."""
        return execute_now_or_later(
            self._commands, Impersonate(address(_read_account(raw).address, 0))
        )

    def stop(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Accept transactions of this account with a signature only."""
        who = address(_read_account(raw).address, 0)
        return execute_now_or_later(self._commands, Impersonate(who, is_on=False))

    def impersonate_all(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Accept transactions of every account without a signature, or stop doing so."""
        return execute_now_or_later(self._commands, ImpersonateAll(_read_switch(raw).is_on))

    def add_account(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Accept transactions of this account without a signature (Ganache)."""
        who = address(_read_passphrase(raw).address, 0)
        return execute_now_or_later(self._commands, Impersonate(who), write_true)

    def remove_account(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Accept transactions of this account with a signature only (Ganache)."""
        who = address(_read_passphrase(raw).address, 0)
        return execute_now_or_later(self._commands, Impersonate(who, is_on=False), write_true)

    def unlock(self, view: LedgerView, raw: Raw) -> bytes:
        """True for an account that the service sends for; accounts are never locked."""
        who = address(_read_passphrase(raw).address, 0)
        if self._keys.secret(who) is None and not is_impersonated(view, who):
            raise NoSigner
        return b"true"


def account_family(accounts: ImpersonationMethods, unlocked: UnlockedMethods) -> Family:
    return Family(
        "Development chains: accounts",
        (
            Method(
                "eth_requestAccounts() -> Address[]",
                accounts.request_accounts,
                ("personal_listAccounts",),
            ),
            command(
                "anvil_impersonateAccount(address: Address) -> Null",
                accounts.impersonate,
                ("hardhat_impersonateAccount",),
            ),
            command(
                "anvil_stopImpersonatingAccount(address: Address) -> Null",
                accounts.stop,
                ("hardhat_stopImpersonatingAccount",),
            ),
            command(
                "anvil_autoImpersonateAccount(enabled: Boolean) -> Null",
                accounts.impersonate_all,
                ("hardhat_autoImpersonateAccount",),
            ),
            Method(
                "eth_sendUnsignedTransaction(transaction: Call) -> Hash", unlocked.send_unsigned
            ),
            command(
                "evm_addAccount(address: Address, passphrase?: Text) -> Boolean",
                accounts.add_account,
                ("evm_unlockUnknownAccount",),
            ),
            command(
                "evm_removeAccount(address: Address, passphrase?: Text) -> Boolean",
                accounts.remove_account,
                ("evm_lockUnknownAccount",),
            ),
            Method(
                "personal_unlockAccount"
                "(address: Address, passphrase?: Text, duration?: Count) -> Boolean",
                accounts.unlock,
            ),
        ),
    )


class DroppedSenderParams(Params):
    """The arguments of anvil_removePoolTransactions."""

    address: str


_read_sender = reader(DroppedSenderParams)


class DropMethods:
    """Methods that empty the pool."""

    def __init__(self, commands: Commands) -> None:
        self._commands: Final = commands

    def drop(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Drop a transaction from the pool; returns its hash, or null if it does not wait."""
        return execute_now_or_later(
            self._commands, DropTransactions(hash=read_hash(raw)), _first_or_null
        )

    def drop_as_hardhat(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Drop a transaction from the pool; returns true if it waited."""
        return execute_now_or_later(
            self._commands, DropTransactions(hash=read_hash(raw)), write_bool
        )

    def drop_all(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Drop all transactions from the pool."""
        take_none(raw)
        return execute_now_or_later(self._commands, DropTransactions())

    def drop_of_sender(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Drop all transactions of an account from the pool."""
        sender = address(_read_sender(raw).address, 0)
        return execute_now_or_later(self._commands, DropTransactions(sender=sender))


def _first_or_null(dropped: list[bytes]) -> bytes:
    return write_data(dropped[0]) if dropped else b"null"


def pool_family(dropping: DropMethods) -> Family:
    return Family(
        "Development chains: the pool",
        (
            command("anvil_dropTransaction(transactionHash: Hash) -> Hash?", dropping.drop),
            command(
                "hardhat_dropTransaction(transactionHash: Hash) -> Boolean",
                dropping.drop_as_hardhat,
            ),
            command(
                "anvil_dropAllTransactions() -> Null",
                dropping.drop_all,
                ("hardhat_dropAllTransactions",),
            ),
            command(
                "anvil_removePoolTransactions(address: Address) -> Null",
                dropping.drop_of_sender,
                ("hardhat_removePoolTransactions",),
            ),
        ),
    )
