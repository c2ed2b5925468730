"""Methods about the chain and the service, such as eth_chainId and eth_blockNumber."""

from functools import cache
from typing import Final

import msgspec
from msgspec import Raw

import foreblock
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.keys import Keys, write_accounts
from foreblock.methods.params import Params, explain
from foreblock.methods.shapes import write_data

_NOTHING: Final = frozenset({b"", b"[]"})


@cache
def client() -> str:
    """Name and version of this software; looking that up takes some milliseconds."""
    return f"foreblock/v{foreblock.__version__}"


class NoParams(Params):
    """The arguments of a method that takes none."""


def take_none(raw: Raw) -> None:
    """Refuse arguments of a method that takes none."""
    if bytes(raw) not in _NOTHING:
        explain(raw, NoParams, 0)


def chain_id(view: LedgerView, raw: Raw) -> bytes:
    """The chain's number, by which transactions are bound to it (EIP-155)."""
    take_none(raw)
    return b'"0x%x"' % view.profile.chain_id


def network_version(view: LedgerView, raw: Raw) -> bytes:
    """The chain's number in decimal, as other nodes give it."""
    take_none(raw)
    return b'"%d"' % view.profile.chain_id


def listening(_view: LedgerView, raw: Raw) -> bytes:
    """True: a service that answers is reachable."""
    take_none(raw)
    return b"true"


class Identity:
    """Methods about who answers, and for whom."""

    def __init__(self, keys: Keys, client_version: str = "") -> None:
        """An empty `client_version` is the software's own."""
        self._keys: Final = keys
        self._client: Final = msgspec.json.encode(client_version or client())

    def client_version(self, _view: LedgerView, raw: Raw) -> bytes:
        """Name and version of this software."""
        take_none(raw)
        return self._client

    def accounts(self, view: LedgerView, raw: Raw) -> bytes:
        """The accounts that the service sends for: on a development chain; none on others."""
        take_none(raw)
        return write_accounts(view, self._keys)


def block_number(view: LedgerView, raw: Raw) -> bytes:
    """The number of the last sealed block."""
    take_none(raw)
    return b'"0x%x"' % view.latest.number


def syncing(_view: LedgerView, raw: Raw) -> bytes:
    """False: there is nothing to catch up with."""
    take_none(raw)
    return b"false"


def protocol_version(_view: LedgerView, raw: Raw) -> bytes:
    """The version of the wire protocol that other nodes speak; there are no peers here."""
    take_none(raw)
    return b'"0x44"'


def mining(_view: LedgerView, raw: Raw) -> bytes:
    """False: nothing is mined."""
    take_none(raw)
    return b"false"


def hash_rate(_view: LedgerView, raw: Raw) -> bytes:
    """Zero: nothing is mined."""
    take_none(raw)
    return b'"0x0"'


def snapshot(view: LedgerView, raw: Raw) -> bytes:
    """The commit that this request and all others of its batch see, with its heads."""
    take_none(raw)
    latest, pending, base, place = view.latest, view.pending, view.base, b"null"
    if pending is not None:
        place = b'{"number":"0x%x","index":"0x%x","hash":%b}' % (
            pending.number, pending.index, write_data(pending.hash),
        )  # fmt: skip
    heads = b'"latest":%b,"pending":%b' % (_head(latest.number, latest.hash), place)
    if view.followed and not base.is_complete:
        trust = view.trust.encode()
        heads += b',"base":%b,"trust":"%b"' % (_head(base.number, base.hash), trust)
    return b'{"commit":"0x%x",%b}' % (view.commit, heads)


def _head(number: int, block_hash: bytes) -> bytes:
    return b'{"number":"0x%x","hash":%b}' % (number, write_data(block_hash))


def coinbase(view: LedgerView, raw: Raw) -> bytes:
    """The address that gets the fees of the newest block that is shown."""
    take_none(raw)
    return write_data(view.shown.header.beneficiary)


def peer_count(_view: LedgerView, raw: Raw) -> bytes:
    """Zero: blocks come from a source and not from peers."""
    take_none(raw)
    return b'"0x0"'
