"""The command `foreblock dev --like anvil`: anvil's flags to settings, files and output.

It runs one network with anvil's defaults, as an ordinary node at `/`. Settings of
`foreblock dev` whose names anvil does not use are options too, hidden in the help. Values in
the environment and in foreblock.toml replace anvil's defaults, and flags replace both.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from foreblock.cli import dev
from foreblock.cli.anvil.flag_table import (
    FORKS,
    IGNORED,
    NOT_TO_BE_HAD,
    TAKEN,
    AnvilFlag,
    Settings,
)
from foreblock.cli.anvil.output import (
    GAS_PRICE,
    STATE_SECONDS,
    StateFile,
    banner,
    config_text,
    state_file,
)
from foreblock.cli.config import CommandLine, loaded, setting_option
from foreblock.cli.verb import FILE, INTERRUPTED, SectionedOption, Verb, failing_in_one_line, option
from foreblock.errors import BadGenesis, BadSetting, InvalidArgument
from foreblock.primitives import parse_number
from foreblock.sequencer.mnemonic import random_mnemonic, seeded_mnemonic
from foreblock.server.sockets import is_loopback_host
from foreblock.service import launch
from foreblock.settings import DevSettings
from foreblock.settings.declare import Declared, declared
from foreblock.types import decode_header

FLAGS: Final = (*TAKEN, *FORKS, *IGNORED, *NOT_TO_BE_HAD)

# Defaults of anvil that differ from those of `foreblock dev`.
DEFAULTS: Final[Mapping[str, str]] = {
    "dialect": "ethereum",
    "view": "sealed",
    "client_version": "anvil/v1.7.1",
    "rules": "ethereum",
    "genesis_time": "start",
    "mining": "automine",
    "gas_limit": "30000000",
    "transaction_gas": "1099511627776",  # 2^40: no limit of its own
    "keep_states": "0",
    "print": "true",
    "log_level": "warning",
    "cors_origins": "*",
    "dev_methods": "everywhere",
    "test_listen": "",
    "feed_listen": "",
    "workers": "1",
    "one_process": "true",
}
# Flags that contradict each other, and those that need another.
EXCLUDING: Final = (
    ("mnemonic", "mnemonic_random"),
    ("mnemonic", "mnemonic_seed_unsafe"),
    ("mnemonic_random", "mnemonic_seed_unsafe"),
    ("no_mining", "block_time"),
    ("state", "load_state"),
    ("state", "dump_state"),
    ("init", "load_state"),
    ("init", "state"),
    ("fork_block_number", "fork_transaction_hash"),
    ("code_size_limit", "disable_code_size_limit"),
    ("gas_limit", "disable_block_gas_limit"),
)
NEEDING: Final = (("mixed_mining", "block_time"),)


def settings_of(given: Mapping[str, str]) -> Settings:
    """The settings of flags by their keys. Raises `ValueError` for a bad block time."""
    settings: Settings = {}
    for flag in FLAGS:
        if flag.key in given:
            settings |= flag.gives(given[flag.key])
    return settings


def refusals(given: Mapping[str, str]) -> Iterator[str]:
    """The reasons why the given flags are refused."""
    for flag in NOT_TO_BE_HAD:
        if flag.key in given:
            yield f"{_flag(flag.key)}: {flag.help}"
    for one, other in EXCLUDING:
        if one in given and other in given:
            yield f"{_flag(one)} cannot be used with {_flag(other)}"
    for one, other in NEEDING:
        if one in given and other not in given:
            yield f"{_flag(one)} needs {_flag(other)}"
    if given.get("network") not in {None, "ethereum", "optimism"}:
        yield f"--network: {given['network']} is not supported; choose ethereum or optimism"


def _flag(key: str) -> str:
    return "--" + key.replace("_", "-")


Flags = Mapping[str, str]

PORT: Final = "8545"
HOST: Final = "127.0.0.1"
VERSION: Final = "foreblock %(version)s, like anvil 1.7.1"
_NOT_GIVEN: Final = (None, False, ())
HELP: Final = """Run one local network with anvil's flags, methods and defaults.

It is an ordinary node: a transaction seals its block, and is visible before only at `pending`. The
chain is new each time; --state keeps its accounts. Stop with Ctrl-C.

Options of `foreblock dev` are accepted as well, unless anvil has one of that name; so are
FOREBLOCK_… variables and foreblock.toml. docs/from-anvil.md covers flags, methods and tools.
"""


class AnvilOption(SectionedOption):
    """An option whose help shows its names without their aliases."""

    def __init__(self, flag: AnvilFlag) -> None:
        form: dict[str, Any] = {"is_flag": True}
        if flag.metavar:
            form = {"metavar": flag.metavar, "multiple": flag.repeats}
        if flag.otherwise is not None:
            form |= {"is_flag": False, "flag_value": flag.otherwise}
        if flag.key == "host":
            form["envvar"] = "ANVIL_IP_ADDR"
        super().__init__(
            [*flag.names, *flag.aliases, flag.key], help=flag.help, section=flag.section, **form
        )
        self._row: Final = (f"{', '.join(flag.names)} {flag.metavar}".strip(), flag.help)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:  # noqa: ARG002, click's
        """Its row in the help."""
        names, text = self._row
        return (names if names.startswith("-") and names[1] != "-" else f"    {names}", text)


def _own_settings() -> list[Declared]:
    """The settings whose flags are none of anvil's."""
    theirs = {name for flag in FLAGS for name in (*flag.names, *flag.aliases)}
    return [it for it in declared(DevSettings) if it.flag not in theirs]


def _run(*, config_file: Path | None, **given: Any) -> None:  # noqa: ANN401, click's
    flags = {key: _text(value) for key, value in given.items() if value not in _NOT_GIVEN}
    own = {it.name: flags.pop(it.name) for it in _own_settings() if it.name in flags}
    for why in refusals(flags):
        raise click.UsageError(why)
    with failing_in_one_line():
        defaults, given_settings = _defaults(flags), _settings(flags)
        texts: dict[str, str | None] = {**given_settings, **own}
        settings = loaded(CommandLine(texts, config_file), DevSettings, defaults).settings
        cut_short = _serve(settings, flags)
    if cut_short:
        sys.exit(INTERRUPTED)


def _serve(settings: DevSettings, flags: Flags) -> bool:
    for name in {"state", "dump_state"} & flags.keys():
        if settings.chain.forking.is_on:
            raise BadSetting(name, "only a part of the state of a fork is known; use --data")
    with dev.networks(settings, keeps_id="chain_id" in flags) as served:
        (first, *_) = served
        with _state_file(flags, first.network.data):
            say = partial(_print_started, first, flags)
            return dev.run(settings, served, say)


def _text(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _settings(flags: Flags) -> Settings:
    """The settings that flags set, including files and a new mnemonic."""
    try:
        settings = settings_of(flags)
    except ValueError:
        raise click.UsageError(f"--block-time: {flags['block_time']!r} is not a time") from None
    _warn_rounded(flags, settings)
    if "init" in flags:
        settings = _of_genesis(flags["init"]) | settings
    if "state" in flags and (state := state_file(flags["state"])).is_file():
        settings["alloc"] = str(state)
    if "load_state" in flags:
        settings["alloc"] = str(state_file(flags["load_state"]))
    if "mnemonic_random" in flags:
        settings["mnemonic"] = random_mnemonic(_number("mnemonic_random", flags))
    if "mnemonic_seed_unsafe" in flags:
        settings["mnemonic"] = seeded_mnemonic(_number("mnemonic_seed_unsafe", flags))
    if "host" in flags or "port" in flags:
        port = flags.get("port", PORT)
        hosts = flags.get("host", HOST).split(",")
        settings["listen"] = ",".join(f"{_in_brackets(host)}:{port}" for host in hosts)
    return settings


def _warn_rounded(flags: Flags, settings: Settings) -> None:
    given = flags.get("block_time")
    if given is not None and float(given) != float(settings["block_time"]):
        click.echo(f"--block-time: {given} s is rounded up to {settings['block_time']} s", err=True)


def _defaults(flags: Flags) -> Settings:
    """Anvil's defaults; if other machines can reach it, any host name is accepted."""
    hosts = flags.get("host", HOST).split(",")
    reached = {} if all(map(is_loopback_host, hosts)) else {"hosts": "*"}
    return {**dev.DEFAULTS, **DEFAULTS, **reached}


def _in_brackets(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _number(key: str, flags: Flags) -> int:
    try:
        return int(flags[key])
    except ValueError:
        flag = key.replace("_", "-")
        raise InvalidArgument(f"--{flag}: expected a number, found {flags[key]!r}") from None


# Fields of a genesis file, and the settings that they are.
_OF_GENESIS: Final = (("timestamp", "timestamp"), ("baseFeePerGas", "base_fee"))


def _of_genesis(file: str) -> Settings:
    """The settings of a genesis file that anvil reads."""
    try:
        genesis = json.loads(Path(file).read_bytes())
        found = {
            setting: str(parse_number(genesis[key], 64))
            for key, setting in _OF_GENESIS
            if genesis.get(key) is not None
        }
        chain_id = (genesis.get("config") or {}).get("chainId")
        number = parse_number(genesis.get("number") or 0, 64)
    except (ValueError, AttributeError, TypeError, RecursionError) as why:
        raise BadGenesis(file, str(why)) from None
    if number:
        raise BadGenesis(file, f"number: a chain starts with block 0, not {number}")
    if chain_id is not None:
        found["chain_id"] = str(chain_id)
    return found | {"alloc": file}


def _state_file(flags: Flags, store: str) -> StateFile:
    """The file of the state, and how often it is written."""
    target = flags.get("state", flags.get("dump_state"))
    seconds = _number("state_interval", flags) if "state_interval" in flags else STATE_SECONDS
    return StateFile(store, None if target is None else state_file(target), seconds)


def _print_started(
    first: launch.ServedNetwork, flags: Flags, started: launch.StartedService
) -> None:
    """Print anvil's output; programs wait for its last line."""
    assert first.network.dev is not None, "it is a dev chain"
    chain, fork = first.network.dev, first.network.fork
    began = first.network.began if fork is None else decode_header(fork.header).timestamp
    begun = chain.timestamp or began
    if "config_out" in flags:
        price = flags.get("gas_price", GAS_PRICE)
        text = config_text(chain, begun, flags.get("gas_limit"), price)
        Path(flags["config_out"]).write_text(text, "utf-8")
    if "quiet" not in flags:
        click.echo(banner(chain, begun, fork))
        for feed in filter(None, started.feeds):
            click.echo(f"Flashblocks at ws://{feed}/ws")
        click.echo(f"Listening on {', '.join(started.addresses)}")


like_anvil: Final = Verb(
    "like-anvil", params=[AnvilOption(flag) for flag in FLAGS], help=HELP, callback=_run
)
for _it in _own_settings():
    setting_option(_it, _it.default, hidden=True)(like_anvil)
option("--config", "config_file", type=FILE, hidden=True)(like_anvil)
click.version_option(None, "-V", "--version", package_name="foreblock", message=VERSION)(like_anvil)
