"""The flags of anvil: accepted with the settings that they set, ignored, or refused. No I/O.

An accepted flag without settings has further effects, which `command` implements. An ignored flag
has no effect here; its help gives the reason. A flag whose effect is not available is refused, and
its help is the reason.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from foreblock.clock import PARTS_OF_A_SECOND
from foreblock.settings import ChainSettings

Settings = dict[str, str]

# Sections of the help.
CHAIN: Final = "Chain"
ACCOUNTS: Final = "Accounts"
MINING: Final = "Blocks"
FORKING: Final = "Fork"
SERVER: Final = "Server"
STATE: Final = "State"
OUTPUT: Final = "Output"
WITHOUT_EFFECT: Final = "Accepted without effect"
REFUSED: Final = "Refused"


class AnvilFlag(NamedTuple):
    """A flag. Its value is text; a switch has none, and some values are optional."""

    names: tuple[str, ...]  # shown in the help
    help: str
    section: str
    metavar: str = ""  # empty for a switch
    gives: Callable[[str], Settings] = lambda _: {}
    aliases: tuple[str, ...] = ()
    repeats: bool = False
    otherwise: str | None = None  # the value if it is omitted, for an optional value

    @property
    def key(self) -> str:
        """Its name as a parameter."""
        return max(self.names, key=len).strip("-").replace("-", "_")


LONGEST_CODE: Final = 1 << 32
UNLIMITED_GAS: Final = 1 << 40
LARGEST_BODY: Final = 1 << 30


def _as(setting: str) -> Callable[[str], Settings]:
    return lambda value: {setting: value}


def _always(**settings: str) -> Callable[[str], Settings]:
    return lambda _: settings


def _fork(name: str) -> Settings:
    """Forks after Osaka that change only blobs are Osaka here."""
    return {"fork": "osaka" if name.lower().startswith("bpo") else name}


def _network(name: str) -> Settings:
    return {"rules": "optimism" if name == "optimism" else "ethereum"}


def _seconds(setting: str) -> Callable[[str], Settings]:
    """A time in milliseconds, as settings have it; the error names the setting."""

    def settings(text: str) -> Settings:
        return {setting: f"{int(text) / 1000}" if text.isdecimal() else text}

    return settings


def _block_time(text: str) -> Settings:
    """The time between blocks, rounded up to one that chains may have; raises `ValueError`."""
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise ValueError(text)
    found = next((part for part in PARTS_OF_A_SECOND if part >= seconds), math.ceil(seconds))
    interval = {"interval": str(found)} if found < ChainSettings.interval else {}
    return {"block_time": str(found), "mining": "clock", **interval}


# --- Accepted ------------------------------------------------------------------------------

TAKEN: Final = (
    AnvilFlag(("--chain-id",), "Chain id.  [default: 31337]", CHAIN, "ID", _as("chain_id")),
    AnvilFlag(
        ("--hardfork",),
        "Fork of Ethereum, paris to osaka, or of OP chains.  [default: latest]",
        CHAIN,
        "NAME",
        _fork,
    ),
    AnvilFlag(("-n", "--network"), "Rules of the chain.", CHAIN, "[ethereum|optimism]", _network),
    AnvilFlag(
        ("--optimism",),
        "Same as --network optimism.",
        CHAIN,
        gives=_always(rules="optimism"),
    ),
    AnvilFlag(
        ("--gas-limit",),
        "Gas limit of a block.  [default: 30000000]",
        CHAIN,
        "GAS",
        _as("gas_limit"),
    ),
    AnvilFlag(
        ("--disable-block-gas-limit",),
        "Allow 2^40 gas for blocks and calls.",
        CHAIN,
        gives=_always(gas_limit=str(UNLIMITED_GAS), call_gas_cap="0"),
    ),
    AnvilFlag(
        ("--enable-tx-gas-limit",),
        "Limit a transaction to 16,777,216 gas, from Osaka on (EIP-7825).",
        CHAIN,
        gives=_always(transaction_gas="0"),
        aliases=("--tx-gas-limit",),
    ),
    AnvilFlag(
        ("--block-base-fee-per-gas",),
        "Base fee of block 0, in wei.  [default: 1000000000]",
        CHAIN,
        "FEE",
        _as("base_fee"),
        ("--base-fee",),
    ),
    AnvilFlag(
        ("--code-size-limit",),
        "Maximum size of contract code.  [default: 24576]",
        CHAIN,
        "BYTES",
        _as("code_size"),
    ),
    AnvilFlag(
        ("--disable-code-size-limit",),
        "Allow code of any size.",
        CHAIN,
        gives=_always(code_size=str(LONGEST_CODE)),
    ),
    AnvilFlag(
        ("--disable-default-create2-deployer",),
        "Leave out the deterministic deployment proxy.",
        CHAIN,
        gives=_always(create2_deployer="false"),
        aliases=("--no-create2",),
    ),
    AnvilFlag(
        ("--timestamp",), "Time of block 0.  [default: now]", CHAIN, "SECONDS", _as("timestamp")
    ),
    AnvilFlag(
        ("--init",), "Genesis file with accounts, chain id, time and base fee.", CHAIN, "FILE"
    ),
    AnvilFlag(
        ("--slots-in-an-epoch",),
        "Blocks from latest to safe, and from safe to finalized.  [default: 32]",
        CHAIN,
        "BLOCKS",
        _as("epoch_blocks"),
    ),
    AnvilFlag(
        ("-a", "--accounts"), "Number of accounts.  [default: 10]", ACCOUNTS, "N", _as("accounts")
    ),
    AnvilFlag(
        ("--balance",),
        "Ether of each account.  [default: 10000]",
        ACCOUNTS,
        "ETHER",
        _as("balance"),
    ),
    AnvilFlag(("-m", "--mnemonic"), "Mnemonic phrase.", ACCOUNTS, "WORDS", _as("mnemonic")),
    AnvilFlag(
        ("--mnemonic-random",),
        "New mnemonic of N words.  [default: 12]",
        ACCOUNTS,
        "[N]",
        otherwise="12",
    ),
    AnvilFlag(
        ("--mnemonic-seed-unsafe",),
        "Mnemonic derived from a number, equal to anvil's.",
        ACCOUNTS,
        "N",
    ),
    AnvilFlag(
        ("--derivation-path",),
        "Path of the accounts' keys.  [default: m/44'/60'/0'/0/]",
        ACCOUNTS,
        "PATH",
        _as("derivation_path"),
    ),
    AnvilFlag(
        ("--auto-impersonate",),
        "Accept transactions of every account without a signature.",
        ACCOUNTS,
        gives=_always(auto_impersonate="true"),
        aliases=("--auto-unlock",),
    ),
    AnvilFlag(
        ("-b", "--block-time"),
        "Time between blocks, 0.1 to 0.5 or whole seconds; without it each transaction seals one.",
        MINING,
        "SECONDS",
        _block_time,
        ("--blockTime",),
    ),
    AnvilFlag(
        ("--no-mining",),
        "Seal blocks on command only.",
        MINING,
        gives=_always(mining="manual"),
        aliases=("--no-mine",),
    ),
    AnvilFlag(
        ("--mixed-mining",),
        "With --block-time, seal a block for each transaction as well.",
        MINING,
        gives=_always(mining="mixed"),
    ),
    AnvilFlag(
        ("--order",),
        "Order of transactions.  [default: fees]",
        MINING,
        "[fees|fifo]",
        _as("order"),
    ),
    AnvilFlag(
        ("-p", "--port"), "Port to listen at; 0 picks a free one.  [default: 8545]", SERVER, "N"
    ),
    AnvilFlag(
        ("--host",),
        "Address to listen at; may be repeated.  [default: 127.0.0.1]",
        SERVER,
        "IP",
        repeats=True,
    ),
    AnvilFlag(
        ("--allow-origin",),
        "Origin whose pages may read responses.  [default: *]",
        SERVER,
        "ORIGIN",
        _as("cors_origins"),
    ),
    AnvilFlag(("--no-cors",), "Allow no origin.", SERVER, gives=_always(cors_origins="")),
    AnvilFlag(
        ("--no-request-size-limit",),
        "Accept requests of up to 1 GiB instead of 5 MiB.",
        SERVER,
        gives=_always(body_limit=str(LARGEST_BODY), received_bytes=str(LARGEST_BODY)),
    ),
    AnvilFlag(
        ("--load-state",), "Start with the accounts of a state dump.", STATE, "FILE", _as("alloc")
    ),
    AnvilFlag(("--dump-state",), "Write all accounts to this file at the end.", STATE, "FILE"),
    AnvilFlag(("--state",), "Load and dump one file, which need not exist.", STATE, "FILE"),
    AnvilFlag(
        ("-s", "--state-interval"),
        "Time between two dumps of the state.  [default: 60]",
        STATE,
        "SECONDS",
    ),
    AnvilFlag(("--config-out",), "Write accounts and keys to a JSON file.", OUTPUT, "FILE"),
    AnvilFlag(
        ("-q", "--quiet"),
        "Print nothing.",
        OUTPUT,
        gives=_always(print="false", log_level="error"),
        aliases=("--silent",),
    ),
    AnvilFlag(
        ("--print-traces",),
        "Print the calls of transactions.",
        OUTPUT,
        gives=_always(print_traces="true"),
        aliases=("--enable-trace-printing",),
    ),
)


# --- Ignored and refused -------------------------------------------------------------------


def _flag(section: str, why: str, *names: str, **more: Any) -> AnvilFlag:  # noqa: ANN401
    """A row, with further fields by name."""
    return AnvilFlag(names, why, section, **more)


_without_effect = partial(_flag, WITHOUT_EFFECT)
_refused = partial(_flag, REFUSED)

IGNORED: Final = (
    _without_effect("History is on disk.", "--prune-history", metavar="[N]", otherwise=""),
    _without_effect("History is on disk.", "--max-persisted-states", metavar="N"),
    _without_effect("History is on disk.", "--transaction-block-keeper", metavar="N"),
    _without_effect("History is on disk.", "--cache-path", metavar="PATH"),
    _without_effect("A dump contains the newest state.", "--preserve-historical-states"),
    _without_effect("Fees follow EIP-1559.", "--gas-price", metavar="FEE"),
    _without_effect(
        "No tip is enforced.", "--disable-min-priority-fee", aliases=("--no-priority-fee",)
    ),
    _without_effect("Gas bounds memory.", "--memory-limit", metavar="BYTES"),
    _without_effect("debug_trace… always has steps.", "--steps-tracing", aliases=("--tracing",)),
    _without_effect(
        "There is one worker; --workers N adds some.",
        "-j",
        "--threads",
        metavar="N",
        aliases=("--jobs",),
    ),
    _without_effect(
        "console.log is printed with the rest; -q prints nothing.",
        "--disable-console-log",
        aliases=("--no-console-log",),
    ),
    _without_effect("Nothing is coloured.", "--color", metavar="WHEN"),
    _without_effect("Output is text.", "--json"),
    _without_effect("Output is text.", "--md"),
    _without_effect("There is one level.", "-v", "--verbosity"),
)


# --- Forks ---------------------------------------------------------------------------------

FORKS: Final = (
    AnvilFlag(
        ("-f", "--fork-url"),
        "Endpoint of a chain to fork, or its name; several are used in their order.",
        FORKING,
        "URL",
        _as("fork_url"),
        ("--rpc-url",),
        repeats=True,
    ),
    AnvilFlag(
        ("--fork-block-number",),
        "Block to fork at; -N is N blocks below the latest.  [default: latest]",
        FORKING,
        "BLOCK",
        _as("fork_block_number"),
    ),
    AnvilFlag(
        ("--fork-transaction-hash",),
        "Transaction to fork after; the first block has it and those before it in its block.",
        FORKING,
        "HASH",
        _as("fork_transaction_hash"),
    ),
    AnvilFlag(
        ("--fork-chain-id",),
        "Chain id that the endpoints must have.",
        FORKING,
        "ID",
        _as("fork_chain_id"),
    ),
    AnvilFlag(
        ("--fork-header",),
        "Header of requests to the endpoints, as in 'Name: value'.",
        FORKING,
        "HEADER",
        _as("fork_header"),
        repeats=True,
    ),
    AnvilFlag(
        ("--timeout",),
        "Longest wait for the endpoints, in milliseconds.  [default: 45000]",
        FORKING,
        "MS",
        _seconds("fork_timeout"),
    ),
    AnvilFlag(
        ("--retries",),
        "Tries after the first, if no endpoint responds.  [default: 5]",
        FORKING,
        "N",
        _as("fork_retries"),
    ),
    AnvilFlag(
        ("--fork-retry-backoff",),
        "Wait between two tries, in milliseconds.  [default: 1000]",
        FORKING,
        "MS",
        _seconds("fork_retry_backoff"),
    ),
    AnvilFlag(
        ("--compute-units-per-second",),
        "Units to spend at each endpoint.  [default: 330]",
        FORKING,
        "N",
        _as("fork_units"),
    ),
    AnvilFlag(
        ("--no-rate-limit",),
        "Spend any number of units.",
        FORKING,
        gives=_always(fork_rate_limit="false"),
        aliases=("--no-rpc-rate-limit",),
    ),
    AnvilFlag(
        ("--no-storage-caching",),
        "Keep no fetched state on disk for other forks of the block.",
        FORKING,
        gives=_always(fork_cache="false"),
    ),
)


NOT_TO_BE_HAD: Final = (
    _refused(
        "IPC is not supported; HTTP and WebSocket share one address",
        "--ipc",
        metavar="[PATH]",
        otherwise="",
        aliases=("--ipcpath",),
    ),
    _refused("a chain starts with block 0", "--number", metavar="N"),
    _refused("blocks are limited by gas only", "--max-transactions", metavar="N"),
    _refused(
        "transactions that the sender cannot afford are rejected", "--disable-pool-balance-checks"
    ),
    _refused("Celo's rules are not supported; those of Ethereum and OP chains are", "--celo"),
    _refused("Tempo's rules are not supported; those of Ethereum and OP chains are", "--tempo"),
)
