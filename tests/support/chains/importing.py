"""Imports from bytes, which tests damage, and the resulting content of a store."""

import io
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foreblock._engine import Store
from foreblock.ledger.genesis.genesis_file import read_genesis
from foreblock.ledger.importing.chain_files import read_fork_choice, read_items
from foreblock.ledger.importing.importer import Progress, Report, import_chain
from foreblock.ledger.storage import rows


def import_bytes(
    data: Path,
    genesis: bytes,
    chain: bytes,
    fork_choice: bytes | None = None,
    report: Report = lambda _: None,
    *,
    address_index: bool = False,
) -> Progress:
    """Import a chain that is not in a file."""
    choice = None if fork_choice is None else read_fork_choice(fork_choice)
    with Store(str(data), write=True) as store:
        items = read_items(io.BytesIO(chain))
        return import_chain(
            store, read_genesis(genesis), items, choice, report, address_index=address_index
        )


@contextmanager
def refusing(
    kind: type[Exception], match: str | None = None
) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Like `pytest.raises`, and the store can be opened again afterwards.

    A traceback refers to local variables of its frames, which may keep the store open in this
    process.
    """
    with pytest.raises(kind, match=match) as caught:
        yield caught
    traceback.clear_frames(caught.tb)


def latest(data: Path) -> int:
    """Return the last block of a store, after a check that the store has nothing beyond it."""
    with Store(str(data)) as store, store.view() as view:
        assert view.heads.latest is not None
        number, _ = view.heads.latest
        assert view.sealed(number) is not None
        assert view.sealed(number + 1) is None
        for key in (rows.header_key, rows.body_key, rows.receipts_key, rows.senders_key):
            assert view.row(key(number)) is not None
            assert view.row(key(number + 1)) is None
        return number


def contents(data: Path) -> Iterator[object]:
    """Return everything that must be equal in two stores of the same chain."""
    with Store(str(data)) as store, store.view() as view:
        heads = view.heads
        yield heads.latest, heads.safe, heads.finalized
        for kind in (rows.CONFIG, rows.ACCOUNTS, b"H", b"B", b"R", b"s"):
            yield view.rows(kind, 10**6)
        assert heads.latest is not None
        for number in range(heads.latest[0] + 1):
            state = view.state(number)
            for address, account in state.accounts(None, 10**6):
                yield number, address, account.nonce, account.balance, state.code(address)
                yield state.slots(address, None, 10**6)
