"""anvil_impersonateAccount and others: which accounts may send without a signature."""

from collections.abc import Awaitable
from typing import Final

from msgspec import Raw

from foreblock.bus.commands import Impersonate, ImpersonateAll
from foreblock.errors import InvalidParams
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.dev.commanding import Commands, done_or_answered, write_true
from foreblock.methods.dev.mining import SwitchParams
from foreblock.methods.keys import NO_SIGNER, Keys, is_impersonated, write_accounts
from foreblock.methods.params import Params, address, reader, take_none


class ImpersonateParams(Params):
    """The arguments of a method about one account."""

    address: str


class PassphraseParams(Params):
    """The arguments of Ganache's methods; a passphrase and a duration mean nothing here."""

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
        """The accounts that the service sends for, as a wallet is asked."""
        take_none(raw)
        return write_accounts(view, self._keys)

    def impersonate(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Take transactions of this account without a signature."""
        return done_or_answered(self._commands, Impersonate(address(_read_account(raw).address, 0)))

    def stop(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Take transactions of this account with a signature only."""
        who = address(_read_account(raw).address, 0)
        return done_or_answered(self._commands, Impersonate(who, is_on=False))

    def impersonate_all(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Take transactions of every account without a signature, or no longer."""
        return done_or_answered(self._commands, ImpersonateAll(_read_switch(raw).is_on))

    def add_account(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The same as anvil_impersonateAccount, as Ganache has it."""
        who = address(_read_passphrase(raw).address, 0)
        return done_or_answered(self._commands, Impersonate(who), write_true)

    def remove_account(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The same as anvil_stopImpersonatingAccount, as Ganache has it."""
        who = address(_read_passphrase(raw).address, 0)
        return done_or_answered(self._commands, Impersonate(who, is_on=False), write_true)

    def unlock(self, view: LedgerView, raw: Raw) -> bytes:
        """True for an account that the service sends for; accounts are never locked."""
        who = address(_read_passphrase(raw).address, 0)
        if self._keys.secret(who) is None and not is_impersonated(view, who):
            raise InvalidParams(NO_SIGNER)
        return b"true"
