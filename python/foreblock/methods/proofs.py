"""eth_getProof, eth_getAccount: an account with the nodes that prove it, and its roots.

Storage keys are read as in geth: up to 32 bytes, with or without `0x` and leading zeros. A key
of 32 bytes is shown as it came, a shorter one as a quantity.
"""

from collections.abc import Awaitable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from msgspec import Raw

from foreblock.errors import BadArgument, InvalidParams
from foreblock.ledger.reading.state_proofs import prove
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.params import (
    BlockParam,
    Params,
    address,
    explain,
    find_block,
    key_digits,
    read_account,
    reader,
    refuse,
    slot,
)
from foreblock.methods.shapes import array, write_data, write_quantity
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps, paced
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.settings import Settings
from foreblock.types import Account

MOST_KEYS: Final = 1024  # as in geth
KEY_DIGITS: Final = 64
ZERO_HASH: Final = bytes(32)
NULL: Final = b"null"


class ProofParams(Params):
    """The arguments of eth_getProof."""

    address: str
    storage_keys: list[str] | None
    block: BlockParam = None


class StorageKey(NamedTuple):
    """A slot, and how it is shown."""

    slot: int
    text: bytes


class ProofFields(Protocol):
    """A proof as it is shown."""

    @property
    def account(self) -> Account | None:
        """The account, or None."""

    @property
    def account_nodes(self) -> Sequence[bytes]:
        """From the root down."""

    @property
    def storage_root(self) -> bytes: ...


class ProofRequest(NamedTuple):
    """A request for proofs."""

    who: bytes
    keys: list[StorageKey]
    block: BlockParam


read_proof = reader(ProofParams)


class ProofMethods:
    """Methods that need the trie of a state."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self.block_required = settings.block_required
        self._scheduler = scheduler

    def get_proof(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The account and some of its slots, with the nodes that prove them."""
        text = self._scheduler.run(partial(self._prove, view, raw), view.client)
        return _later(text) if isinstance(text, list) else text

    def get_account(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """Balance, nonce, code hash and storage root of an account, or null."""
        text = self._scheduler.run(partial(self._show, view, raw), view.client)
        return _later(text) if isinstance(text, list) else text

    def _prove(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[Text]:
        who, keys, named = yield from self.read(raw, pace)
        block = find_block(view, named, 2)
        steps = prove(view, block, who, [key.slot for key in keys])
        few = len(keys) <= THRESHOLDS.proven_slots
        proof = yield from (paced(steps, pace) if few else steps)
        slots = (proof.slot(place) for place in range(len(keys)))
        return (yield from paced(render_proof(who, keys, proof, slots), pace))

    def read(self, raw: Raw, pace: Pace) -> Steps[ProofRequest]:
        """The arguments of eth_getProof."""
        if len(raw) > THRESHOLDS.thread_params_bytes:
            raise _too_many("or as long as them")
        params = read_proof(raw)
        if params.block is None and self.block_required:
            params = explain(raw, ProofParams, 3)
        keys = yield from paced(_read_keys(params.storage_keys or ()), pace)
        return ProofRequest(address(params.address, 0), keys, params.block)

    def _show(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[Text]:
        who, named = read_account(raw, block_required=self.block_required)
        proof = yield from paced(prove(view, find_block(view, named, 1), who, ()), pace)
        return render_account(proof)


def render_account(proof: ProofFields) -> bytes:
    """The result of eth_getAccount."""
    account = proof.account
    if account is None:
        return NULL
    return b'{"balance":%b,"nonce":%b,"codeHash":%b,"storageRoot":%b}' % (
        write_quantity(account.balance),
        write_quantity(account.nonce),
        write_data(account.code_hash),
        write_data(proof.storage_root),
    )


def _read_keys(given: Sequence[str]) -> Steps[list[StorageKey]]:
    if len(given) > MOST_KEYS:
        raise _too_many(f"got {len(given)}")
    keys = []
    for place, text in enumerate(given):
        if place and not place % THRESHOLDS.read_slots:
            yield None
        try:
            keys.append(_read_key(text))
        except BadArgument as wrong:
            refuse(1, f"$[{place}]", wrong.why)
    return keys


def _too_many(found: str) -> InvalidParams:
    return InvalidParams(f"too many storage keys requested (max {MOST_KEYS}, {found})")


def _read_key(text: str) -> StorageKey:
    digits = key_digits(text)
    if not digits:
        return StorageKey(0, write_quantity(0))
    number = slot(f"0x{digits}", 1)
    whole = len(digits) >= KEY_DIGITS - 1  # an odd number of digits lacks a zero
    return StorageKey(number, b'"0x%064x"' % number if whole else write_quantity(number))


def render_proof(
    who: bytes,
    keys: Sequence[StorageKey],
    proof: ProofFields,
    slots: Iterable[tuple[int, Sequence[bytes]]],
) -> Steps[Text]:
    """The result in steps of a few keys each; `slots` are their values, with their nodes."""
    proven = iter(slots)
    account = proof.account
    pieces = [
        b'{"address":%b,"accountProof":%b,"balance":%b,"codeHash":%b,"nonce":%b,'
        b'"storageHash":%b,"storageProof":['
        % (
            write_data(who),
            _nodes(proof.account_nodes),
            write_quantity(0 if account is None else account.balance),
            write_data(ZERO_HASH if account is None else account.code_hash),
            write_quantity(0 if account is None else account.nonce),
            write_data(ZERO_HASH if account is None else proof.storage_root),
        )
    ]
    for start in range(0, len(keys), THRESHOLDS.rendered_proofs):
        some = keys[start : start + THRESHOLDS.rendered_proofs]
        texts = [_storage_proof(key, *next(proven)) for key in some]
        pieces.append((b"," if start else b"") + b",".join(texts))
        yield None
    pieces.append(b"]}")
    return in_pieces(pieces)


def _storage_proof(key: StorageKey, value: int, nodes: Sequence[bytes]) -> bytes:
    return b'{"key":%b,"value":%b,"proof":%b}' % (key.text, write_quantity(value), _nodes(nodes))


def _nodes(nodes: Sequence[bytes]) -> bytes:
    return array(list(map(write_data, nodes)))


async def _later(text: Text) -> Text:
    return text
