"""Methods about the chain and the service rather than a block."""

from importlib.metadata import version
from typing import Final

import msgspec
from msgspec import Raw, Struct

from foreblock.ledger.view import LedgerView
from foreblock.methods.params import explain

CLIENT: Final = msgspec.json.encode(f"foreblock/v{version('foreblock')}")


class NoParams(Struct, array_like=True, gc=False):
    """The arguments of a method that takes none."""


def chain_id(view: LedgerView, raw: Raw) -> bytes:
    """The chain's number, by which transactions are bound to it (EIP-155)."""
    explain(raw, NoParams, 0)
    return b'"0x%x"' % view.profile.chain_id


def network_version(view: LedgerView, raw: Raw) -> bytes:
    """The same in decimal, which is what other nodes give."""
    explain(raw, NoParams, 0)
    return b'"%d"' % view.profile.chain_id


def client_version(_view: LedgerView, raw: Raw) -> bytes:
    """Who answers."""
    explain(raw, NoParams, 0)
    return CLIENT


def block_number(view: LedgerView, raw: Raw) -> bytes:
    """The number of the last sealed block."""
    explain(raw, NoParams, 0)
    return b'"0x%x"' % view.latest.number


def accounts(_view: LedgerView, raw: Raw) -> bytes:
    """The accounts that the service signs for: none."""
    explain(raw, NoParams, 0)
    return b"[]"


def syncing(_view: LedgerView, raw: Raw) -> bytes:
    """Whether it is catching up: what it has is all there is to wait for."""
    explain(raw, NoParams, 0)
    return b"false"
