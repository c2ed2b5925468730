"""The flags of anvil that are taken, with the settings that they give. No I/O.

Those that give none here mean more than settings; `command` looks at them.
"""

import math
from collections.abc import Callable
from typing import Final

from foreblock.cli.anvil.flag import (
    ACCOUNTS,
    CHAIN,
    MINING,
    OUTPUT,
    SERVER,
    STATE,
    AnvilFlag,
    Settings,
)

LONGEST_CODE: Final = 1 << 32
UNLIMITED_GAS: Final = 1 << 40
LARGEST_BODY: Final = 1 << 30


def _as(setting: str) -> Callable[[str], Settings]:
    return lambda value: {setting: value}


def _always(**settings: str) -> Callable[[str], Settings]:
    return lambda _: settings


def _fork(name: str) -> Settings:
    """Forks after Osaka that change blobs alone are Osaka here."""
    return {"fork": "osaka" if name.lower().startswith("bpo") else name}


def _network(name: str) -> Settings:
    return {"rules": "optimism" if name == "optimism" else "ethereum"}


def whole_seconds(text: str) -> int:
    """A time between blocks in whole seconds, rounded up; raises `ValueError`."""
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise ValueError(text)
    return math.ceil(seconds)


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
        "The same as --network optimism.",
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
        "Let blocks and calls have 2^40 gas.",
        CHAIN,
        gives=_always(gas_limit=str(UNLIMITED_GAS), call_gas_cap="0"),
    ),
    AnvilFlag(
        ("--enable-tx-gas-limit",),
        "Let a transaction have 16,777,216 gas at most, from Osaka on (EIP-7825).",
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
        "Bytes that the code of a contract may have.  [default: 24576]",
        CHAIN,
        "BYTES",
        _as("code_size"),
    ),
    AnvilFlag(
        ("--disable-code-size-limit",),
        "Let code have any size.",
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
        ("--init",), "Genesis file: accounts, chain id, time and base fee are read.", CHAIN, "FILE"
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
    AnvilFlag(("-m", "--mnemonic"), "Words of the accounts.", ACCOUNTS, "WORDS", _as("mnemonic")),
    AnvilFlag(
        ("--mnemonic-random",),
        "New words, N of them.  [default: 12]",
        ACCOUNTS,
        "[N]",
        otherwise="12",
    ),
    AnvilFlag(
        ("--mnemonic-seed-unsafe",),
        "The words of a number, the same as anvil's.",
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
        "Take transactions of every account without a signature.",
        ACCOUNTS,
        gives=_always(auto_impersonate="true"),
        aliases=("--auto-unlock",),
    ),
    AnvilFlag(
        ("-b", "--block-time"),
        "Time between blocks, rounded up to whole seconds; without it each transaction seals one.",
        MINING,
        "SECONDS",
        lambda seconds: {"block_time": str(whole_seconds(seconds)), "mining": "clock"},
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
        "Which transaction goes first.  [default: fees]",
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
        "Origin whose pages may read answers.  [default: *]",
        SERVER,
        "ORIGIN",
        _as("cors_origins"),
    ),
    AnvilFlag(("--no-cors",), "Allow no origin.", SERVER, gives=_always(cors_origins="")),
    AnvilFlag(
        ("--no-request-size-limit",),
        "Take requests of up to 1 GiB instead of 5 MiB.",
        SERVER,
        gives=_always(body_limit=str(LARGEST_BODY), received_bytes=str(LARGEST_BODY)),
    ),
    AnvilFlag(
        ("--load-state",), "Begin with the accounts of a state dump.", STATE, "FILE", _as("alloc")
    ),
    AnvilFlag(("--dump-state",), "Write all accounts to this file at the end.", STATE, "FILE"),
    AnvilFlag(("--state",), "Both with one file, which need not exist.", STATE, "FILE"),
    AnvilFlag(
        ("-s", "--state-interval"),
        "Time after which the state is written again.  [default: 60]",
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
