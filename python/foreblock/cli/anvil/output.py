"""Output of `foreblock dev --like anvil`: the banner, the files of --config-out and --state.

Programs read keys and the chain id from the banner, so headings and order are anvil's.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import structlog

from foreblock.errors import StateNotWritten
from foreblock.ledger.rules.transaction_rules import checksum_address
from foreblock.primitives import format_data
from foreblock.secret_urls import redact_urls
from foreblock.sequencer.mnemonic import DevAccount, dev_accounts
from foreblock.settings import ChainSettings, ForkPoint
from foreblock.types import Header, decode_header

LINE: Final = "=================="
GENESIS_NUMBER: Final = 0
GAS_PRICE: Final = "1875000000"  # anvil's first


def banner(chain: ChainSettings, begun: int, fork: ForkPoint | None = None) -> str:
    """Accounts, keys and facts of the chain, whose first block has the time `begun`."""
    accounts = _accounts(chain)
    parts = [
        "foreblock dev, like anvil\n",
        _part("Available Accounts", _numbered(_with_balance(each, chain) for each in accounts)),
        _part("Private Keys", _numbered(format_data(each.secret) for each in accounts)),
        _wallet(chain),
        *([] if fork is None else [_fork(chain, fork)]),
        _part("Chain ID", str(chain.chain_id)),
        _part("Base Fee", str(chain.base_fee)),
        _part("Gas Limit", str(chain.gas_limit)),
        _part("Genesis Timestamp", str(begun)),
        _part("Genesis Number", str(GENESIS_NUMBER if fork is None else _header(fork).number)),
    ]
    return "\n".join(parts)


def _wallet(chain: ChainSettings) -> str:
    return (
        f"Wallet\n{LINE}\nMnemonic:          {chain.mnemonic}\nDerivation path:   {_path(chain)}\n"
    )


def _fork(chain: ChainSettings, fork: ForkPoint) -> str:
    header, trust = _header(fork), "proven" if fork.proven else "trusted: no proofs"
    source = chain.forking.state or ", ".join(map(redact_urls, chain.forking.url))
    return (
        f"Fork\n{LINE}\nEndpoint:       {source}\n"
        f"Block number:   {header.number}\nBlock hash:     {format_data(header.hash)}\n"
        f"Chain ID:       {fork.chain_id}\nState:          {trust}\n"
    )


def _header(fork: ForkPoint) -> Header:
    return decode_header(fork.header)


def config_text(
    chain: ChainSettings,
    begun: int,
    gas_limit: str | None = None,
    gas_price: str = GAS_PRICE,
) -> str:
    """The facts of the banner as JSON in anvil's form, with limit and price from flags."""
    accounts = _accounts(chain)
    return json.dumps(
        {
            "available_accounts": [format_data(each.address) for each in accounts],
            "private_keys": [format_data(each.secret) for each in accounts],
            "wallet": {
                "derivation_path": _path(chain),
                "mnemonic": chain.mnemonic,
            },
            "base_fee": str(chain.base_fee),
            "gas_price": gas_price,
            "gas_limit": gas_limit,
            "genesis_timestamp": str(begun),
        }
    )


def _accounts(chain: ChainSettings) -> tuple[DevAccount, ...]:
    return dev_accounts(chain.mnemonic, chain.accounts, chain.derivation_path)


def _path(chain: ChainSettings) -> str:
    return chain.derivation_path.rstrip("/") + "/"


def _with_balance(account: DevAccount, chain: ChainSettings) -> str:
    return f"{checksum_address(account.address)} ({chain.balance}.{0:018} ETH)"


def _numbered(lines: Iterable[str]) -> str:
    return "\n".join(f"({number}) {line}" for number, line in enumerate(lines))


def _part(heading: str, text: str) -> str:
    return f"{heading}\n{LINE}\n\n{text}\n"


# --- State ---------------------------------------------------------------------------------

STATE_SECONDS: Final = 60  # between two dumps, as in anvil
IN_FOLDER: Final = "state.json"
DUMP: Final = (sys.executable, "-m", "foreblock.service.state_dump")

log = structlog.get_logger()


def state_file(path: str) -> Path:
    """Return the file at a path; in a directory it has anvil's name."""
    found = Path(path).absolute()
    return found / IN_FOLDER if found.is_dir() else found


class StateFile:
    """Writes the state of a store to a file while it is entered, and when it is left."""

    def __init__(self, store: str, file: Path | None, seconds: float) -> None:
        """Without a file nothing is written; with 0 seconds only at the end."""
        self._store: Final = store
        self._file: Final = file
        self._seconds: Final = seconds
        self._ended: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._repeat, name="state", daemon=True)

    def __enter__(self) -> Self:
        if self._file is not None and self._seconds:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None
    ) -> None:
        """Write the last state, unless the chain has failed. Raises `StateNotWritten`."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._file is not None and kind is None:
            self._write(self._file)

    def _repeat(self) -> None:
        assert self._file is not None
        while not self._ended.wait(self._seconds):
            try:
                self._write(self._file)
            except (StateNotWritten, OSError) as why:
                log.warning("state_not_written", why=str(why))

    def _write(self, file: Path) -> None:
        done = subprocess.run(  # noqa: S603, the command is our own
            [*DUMP, self._store, str(file)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            process_group=0,  # Ctrl-C ends the chain, whose state is written then
        )
        if done.returncode:
            raise StateNotWritten(str(file), done.stderr.strip() or f"code {done.returncode}")
