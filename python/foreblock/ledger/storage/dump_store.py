"""Write the state after a block as JSON lines, in the form that `init-state` of reth reads.

The first line is the root of the state, each other line an account, in the order of addresses:

    {"root":"0x…"}
    {"address":"0x…","balance":"0x1","nonce":"0x0","code":"0x…","storage":{"0x…":"0x…"}}

Accounts without code or storage have no such key. All is read from one view, a page at a time,
and written as it is read: memory is bounded, also where one account has millions of slots.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from foreblock._engine import Account, Header, State, Store, View, keccak256
from foreblock.errors import NoChain, UnknownBlock
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.first_block import read_first_block

ACCOUNTS: Final = 1_000  # of a page
SLOTS: Final = 10_000
REACH: Final = 256  # blocks that BLOCKHASH looks back
_NO_CODE: Final = keccak256(b"")
_ADDRESSES: Final = 1 << 64  # by their first eight bytes


@dataclass(frozen=True, slots=True)
class Dumped:
    """What was written."""

    header: Header
    accounts: int
    slots: int


# The part of all addresses that is done, from 0 to 1.
Report = Callable[[float], None]


def dump_store(
    path: Path, block: int | None, out: BinaryIO, report: Report, header: Path | None = None
) -> Dumped:
    """Write the state after a block of a store, and its header with those before it.

    Raises as `dump_state`, and `StoreMissing`.
    """
    with Store(str(path)) as store, store.view() as view:
        done = dump_state(view, block, out, report)
        if header is not None:
            header.write_bytes(b"".join(_headers(view, done.header.number)))
        return done


def _headers(view: View, number: int) -> Iterator[bytes]:
    """The block and those before it that BLOCKHASH may ask for, as far as they are stored."""
    first = max(number - REACH, read_first_block(view).number)
    for each in range(first, number + 1):
        yield read_header(view, each)[0].encode()


def dump_state(
    view: View, block: int | None, out: BinaryIO, report: Report = lambda _: None
) -> Dumped:
    """Write the state after a block, the latest if none is named.

    Raises `UnknownBlock`, `PrunedState`, and `NoChain` for an empty store.
    """
    number = _latest(view) if block is None else block
    if view.sealed(number) is None:
        raise UnknownBlock(number)
    state = view.state(number)
    header, _ = read_header(view, number)
    out.write(b'{"root":"0x%s"}\n' % header.state_root.hex().encode())
    accounts = slots = 0
    for address, account in _accounts(state):
        out.write(_account(state, address, account))
        slots += _write_storage(state, address, out)
        out.write(b"}\n")
        accounts += 1
        if accounts % ACCOUNTS == 0:
            report(int.from_bytes(address[:8]) / _ADDRESSES)
    report(1.0)
    return Dumped(header, accounts, slots)


def _latest(view: View) -> int:
    latest = view.heads.latest
    if latest is None:
        raise NoChain("this folder")
    return latest[0]


def _accounts(state: State) -> Iterator[tuple[bytes, Account]]:
    after: bytes | None = None
    while accounts := state.accounts(after, ACCOUNTS):
        yield from accounts
        after = accounts[-1][0]


def _account(state: State, address: bytes, account: Account) -> bytes:
    """The members of an account before its storage."""
    text = (
        f'{{"address":"0x{address.hex()}","balance":"{account.balance:#x}"'
        f',"nonce":"{account.nonce:#x}"'
    )
    if account.code_hash != _NO_CODE:
        text += f',"code":"0x{state.code(address).hex()}"'
    return text.encode()


def _write_storage(state: State, address: bytes, out: BinaryIO) -> int:
    """Write the slots of an account; gives their number."""
    written = 0
    slots = state.slots(address, None, SLOTS)
    while slots:
        out.write(b"," if written else b',"storage":{')
        out.write(",".join(f'"{slot:#066x}":"{value:#066x}"' for slot, value in slots).encode())
        written += len(slots)
        slots = state.slots(address, slots[-1][0], SLOTS) if len(slots) == SLOTS else []
    if written:
        out.write(b"}")
    return written
