"""How a store begins: with block 0, or by proving that it began with the same one."""

from dataclasses import fields

from foreblock._engine import Block, Overlay, Store, View
from foreblock.errors import BadGenesis, DifferentGenesis
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.genesis_file import Genesis
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.verification import MESSAGE_PASSER
from foreblock.ledger.rules.working_state import WorkingState
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import read_header
from foreblock.primitives import format_data


def begin_chain(store: Store, genesis: Genesis) -> None:
    """Write block 0 into an empty store; in any other, check that it is this one."""
    with store.view() as view:
        if view.heads.latest is not None:
            _check_same(view, genesis)
            return
    _write(store, genesis)


def stored_profile(view: View) -> ChainProfile:
    """The profile of the chain that a store holds."""
    return read_profile(JsonValue.parse(view.row(rows.CONFIG) or b"", BadGenesis))


def _write(store: Store, genesis: Genesis) -> None:
    batch = store.batch()
    scratch = WorkingState(Overlay.empty(), store.trie(), batch.next)
    for address, account in genesis.accounts.items():
        scratch.overlay.set(
            address,
            balance=account.balance,
            nonce=account.nonce,
            code=account.code,
            state=account.storage,
        )
    root = scratch.root()
    header = genesis.seal(root, scratch.storage_root(MESSAGE_PASSER))
    block = Block(header, withdrawals=None if header.withdrawals_root is None else ())
    changes, nodes = scratch.finish()
    batch.append(0, block.hash, changes, nodes, rows.index_entries(block, ()))
    for key, value in rows.block_rows(block, header.difficulty, ()):
        batch.put(key, value)
    batch.put(rows.CONFIG, genesis.config)
    batch.put(rows.ACCOUNTS, genesis.digest_of_accounts())
    batch.settle()
    store.commit(batch)


def _check_same(view: View, genesis: Genesis) -> None:
    """Compare everything a genesis has without building its state again."""
    stored, _ = read_header(view, 0)
    found = genesis.seal(stored.state_root, stored.withdrawals_root or b"")
    _compare("header", stored.hash, found.hash)
    _compare("accounts", view.row(rows.ACCOUNTS) or b"", genesis.digest_of_accounts())
    before, now = stored_profile(view), genesis.profile
    for field in fields(ChainProfile):
        _compare(
            field.name.replace("_", " "), getattr(before, field.name), getattr(now, field.name)
        )


def _compare(what: str, stored: object, found: object) -> None:
    if stored != found:
        raise DifferentGenesis(what, _show(stored), _show(found))


def _show(fact: object) -> str:
    return format_data(fact) if isinstance(fact, bytes) else str(fact)
