"""Keys of a development chain's accounts, and which accounts may send. No I/O.

The service signs for accounts whose keys it has, and takes transactions of impersonated ones
without a signature. Keys are never shown or logged.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from foreblock.errors import InvalidParams
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.shapes import array, write_data

NO_SIGNER: Final = "No Signer available"  # anvil's words, which tools read


class Keys:
    """Secret keys by address, in the order of the accounts."""

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Mapping[bytes, bytes] = MappingProxyType({})) -> None:
        self._secrets: Final = secrets

    def __repr__(self) -> str:
        return f"Keys({len(self._secrets)})"

    @property
    def addresses(self) -> tuple[bytes, ...]:
        return tuple(self._secrets)

    def secret(self, address: bytes) -> bytes | None:
        """The key of an account, if it is here."""
        return self._secrets.get(address)

    def required(self, address: bytes) -> bytes:
        """The key of an account; raises `InvalidParams` where it is not here."""
        secret = self._secrets.get(address)
        if secret is None:
            raise InvalidParams(NO_SIGNER)
        return secret


NO_KEYS: Final = Keys()


def is_impersonated(view: LedgerView, address: bytes) -> bool:
    """Return whether an account may send without a signature."""
    state = view.dev_state
    return state is not None and (state.impersonates_all or address in state.impersonated)


def write_accounts(view: LedgerView, keys: Keys) -> bytes:
    """The accounts that may send: those with keys, then impersonated ones."""
    state = view.dev_state
    own = keys.addresses
    others = () if state is None else (each for each in state.impersonated if each not in own)
    return array([write_data(each) for each in (*own, *others)])
