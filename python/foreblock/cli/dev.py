"""`foreblock dev`: two local chains with real flashblocks in one command.

With `--like anvil` the rest of the command line is that of `cli.anvil`.
"""

import foreblock.starting  # noqa: F401, before all others

# isort: split
import json
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
from msgspec import structs

from foreblock.cli.config import (
    PORT_OPTION,
    PROGRAM,
    CommandLine,
    at_port,
    loaded,
    settings_options,
)
from foreblock.cli.verb import INTERRUPTED, Verb, failing_in_one_line, option
from foreblock.errors import BadGenesis, BadSetting
from foreblock.ledger.rules.transaction_rules import checksum_address
from foreblock.primitives import format_data, parse_number
from foreblock.sequencer.faults.plan import Faults
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from foreblock.server.head import LOOPBACK
from foreblock.server.sockets import is_loopback_host, parse_address
from foreblock.service import launch
from foreblock.service.temporary import PREFIX, temporary_folder
from foreblock.settings import ChainSettings, DevSettings, ForkPoint, Settings
from foreblock.settings.loading import DEFAULT
from foreblock.settings.networks import Network, check_interval, check_kept, log_of

SHOWN_ACCOUNTS: Final = 10
GENESIS_FILE: Final = "genesis.json"  # the writer writes it to the directory of a chain
FOR_ANY_TOOL: Final = "forge, cast, Hardhat, wallets: unchanged"
FOR_PENDING: Final = "viem, ethers, web3.py: read at `pending`"
LIKE: Final = "--like"
ANVIL: Final = "anvil"
# Defaults that differ from those of other commands.
DEFAULTS: Final[Mapping[str, str]] = {
    "nice": "5",  # so that workers do not delay the writer
    "cors_origins": ",".join(LOOPBACK),
}
# In the short help, in this order.
EVERYDAY: Final = (
    "port", "like", "data", "load", "block_time", "interval", "mining", "chain_id", "mnemonic",
    "test_listen", "faults", "print", "workers", "config_file",
)  # fmt: skip
EXAMPLES: Final = (
    "foreblock dev",
    "foreblock dev --port 18545 --load 100 --data build/chain",
    "foreblock dev --like anvil --block-time 2",
)


class DevVerb(Verb):
    """The command, or the one that `--like` names."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401, click's
    ) -> click.Context:
        """Parse the command line with the options of the named command."""
        rest = without_like(args)
        if rest is None:
            return super().make_context(info_name, args, parent, **extra)
        from foreblock.cli.anvil import like_anvil  # noqa: PLC0415, only when it is used

        return like_anvil.make_context(f"{info_name} {LIKE} {ANVIL}", rest, parent, **extra)


def without_like(args: Sequence[str]) -> list[str] | None:
    """Return the arguments without `--like anvil`; None if they do not contain it."""
    for at, word in enumerate(args):
        if word == "--":
            break
        if word == f"{LIKE}={ANVIL}":
            return [*args[:at], *args[at + 1 :]]
        if word == LIKE and args[at + 1 : at + 2] == [ANVIL]:
            return [*args[:at], *args[at + 2 :]]
    return None


@click.command(cls=DevVerb, everyday=EVERYDAY, examples=EXAMPLES)
@settings_options(DevSettings, DEFAULTS)
@option(
    LIKE,
    type=click.Choice([ANVIL]),
    help="Accept the flags of another dev chain and behave like it; --help then lists them.",
)
@PORT_OPTION
def dev(given: CommandLine, *, like: None, port: int | None) -> None:
    """Run two local networks with flashblocks.

    A main and a test network start, whose pending block grows every 200 ms and is sealed every 2 s.
    Without --data the chains are new each time and are removed at the end. Stop with Ctrl-C.

    Every option is also a setting in foreblock.toml and an environment variable, as in
    FOREBLOCK_BLOCK_TIME; docs/settings.md has details, docs/dev-chain.md describes the chains.
    """
    assert like is None, "DevVerb runs the other command"
    with failing_in_one_line():
        found = loaded(given, DevSettings, DEFAULTS)
        settings = at_port(found, port)
        with networks(settings, keeps_id=found.origins["chain_id"] != DEFAULT) as served:
            cut_short = run(
                settings, served, lambda started: _print_started(settings, served, started)
            )
    if cut_short:
        sys.exit(INTERRUPTED)
    _print_stopped()


@contextmanager
def networks(
    settings: DevSettings, *, keeps_id: bool = False
) -> Iterator[list[launch.ServedNetwork]]:
    """The networks of the settings; temporary ones are removed at the end.

    A fork has the id of the other chain, unless `keeps_id` is set.
    """
    Faults.parse(settings.chain.faults)  # refuses unknown faults before anything starts
    if settings.chain.one_process and settings.test_listen:
        raise BadSetting("one_process", "one process has one network: test_listen is not empty")
    check_interval(settings.chain)
    _check_rules(settings.chain)
    _check_replication(settings)
    with _folder(settings.service.data) as folder:
        if settings.chain.mirror:
            yield [_mirror(settings, folder)]
        else:
            yield _networks(settings, folder, _fork(settings, folder / "main", keeps_id))


def run(
    settings: DevSettings,
    served: Sequence[launch.ServedNetwork],
    say: Callable[[launch.StartedService], None],
) -> bool:
    """Serve networks until a signal; return true if a second signal cut the stop short."""
    service = settings.service
    in_one_process = settings.chain.one_process and service.workers <= 1
    if in_one_process:
        service = replace(service, nice=0)  # the same process writes the chain

    def started(found: launch.StartedService) -> None:
        for line in exposure(settings, found.addresses):
            click.echo(line, err=True)
        say(found)

    return launch.run(service, served, started, in_one_process=in_one_process)


def exposure(settings: DevSettings, addresses: Sequence[str]) -> list[str]:
    """Warnings about access by other machines and web pages; none if all addresses are loopback."""
    found = [each for some in addresses for each in some.split(", ")]
    reached = [each for each in found if not is_loopback_host(parse_address(each)[0])]
    if not reached:
        return []
    chain, access = settings.chain, settings.service.access
    can = "can" if chain.dev_methods == "everywhere" else "cannot"
    listed = access.cors_origins
    if "*" in (*listed, *access.hosts):  # a page of any name can be made one of the same origin
        pages = "every origin can"
    else:
        pages = f"{len(listed)} listed origins can" if listed else "other origins cannot"
    return [
        f"warning: other machines reach {', '.join(reached)}",
        f"  they {can} change the chain or use its unlocked accounts (dev_methods)",
        *["  the keys of its accounts are well known"] * (chain.mnemonic == TEST_MNEMONIC),
        f"  web pages of {pages} use it (cors_origins, hosts)",
    ]


def _check_rules(chain: ChainSettings) -> None:
    """Refuse the name of a chain in place of a fork of the rules."""
    if chain.fork == ChainSettings.fork:
        return
    from foreblock.chains.chain_file import names  # noqa: PLC0415, most chains need none

    if chain.fork in names():
        raise BadSetting("fork", f"{chain.fork} is a chain: fork it with --fork-url {chain.fork}")


def _check_replication(settings: DevSettings) -> None:
    """Refuse settings that two networks, or one process, cannot share."""
    for name in ("log_name", "snapshot_listen", "snapshot_from"):
        if settings.test_listen and getattr(settings.replication, name):
            raise BadSetting(name, "it is for one network: test_listen is not empty")
    if settings.replication.log and settings.chain.one_process:
        raise BadSetting("log", "one process waits for no log: one_process is on")


@contextmanager
def _folder(data: str) -> Iterator[Path]:
    if data:
        yield Path(data)
    else:
        with temporary_folder(PREFIX + "dev-") as folder:
            yield folder


def _fork(settings: DevSettings, folder: Path, keeps_id: bool) -> ForkPoint | None:  # noqa: FBT001
    if not settings.chain.forking.is_on:
        return None
    from foreblock.cli.forks import chosen_fork  # noqa: PLC0415, others need none

    return chosen_fork(settings, folder, keeps_id=keeps_id)


def _mirror(settings: DevSettings, folder: Path) -> launch.ServedNetwork:
    """The network that mirrors another chain. Raises `ForeblockError`."""
    from foreblock.cli.forks import chosen_mirror  # noqa: PLC0415, others need none

    follow, chain = chosen_mirror(settings)
    main = _network("main", 0, settings, folder, settings.service.listen, "")
    assert main.network.dev is not None
    profile = chain.profile
    dev = replace(main.network.dev, chain_id=profile.chain_id, block_time=profile.block_time)
    return main._replace(network=structs.replace(main.network, dev=dev, follow=follow))


def _networks(
    settings: DevSettings, folder: Path, fork: ForkPoint | None
) -> list[launch.ServedNetwork]:
    main = _network("main", 0, settings, folder, settings.service.listen, settings.feed_listen)
    if fork is not None:
        assert main.network.dev is not None
        config = json.loads(fork.config)
        dev = replace(main.network.dev, chain_id=config["chainId"])
        return [main._replace(network=structs.replace(main.network, dev=dev, fork=fork))]
    served = [main]
    if settings.test_listen:
        served.append(
            _network("test", 1, settings, folder, settings.test_listen, settings.test_feed_listen)
        )
    return served


def _network(
    name: str, position: int, settings: DevSettings, folder: Path, listen: str, feed: str
) -> launch.ServedNetwork:
    chain = settings.chain
    check_kept(settings.keep)
    network = Network(
        name=name,
        data=str(folder / name),
        source="dev",
        keep=settings.keep,
        address_index=settings.address_index,
        store=settings.service.store,
        view=settings.service.view,
        sync=bool(settings.service.data),  # a temporary chain needs no durable commits
        dev=replace(
            chain,
            genesis=_absolute(chain.genesis),
            alloc=_absolute(chain.alloc),
            forking=replace(
                chain.forking,
                record=_absolute(chain.forking.record),
                state=_absolute(chain.forking.state),
                cache_path=_absolute(chain.forking.cache_path),
            ),
            chain_id=chain.chain_id + position,
            seed=chain.seed + position,
        ),
        began=_began(folder / name) if chain.genesis_time == "start" else 0,
        log=log_of(name, settings.replication),
    )
    return launch.ServedNetwork(network, listen, feed)


def _absolute(file: str) -> str:
    return str(Path(file).absolute()) if file else ""


def _began(store: Path) -> int:
    """The timestamp of block 0 of the chain in a directory; that of a new chain is now."""
    try:
        genesis = json.loads((store / GENESIS_FILE).read_bytes())
        return parse_number(genesis["timestamp"], 64)
    except FileNotFoundError:
        return int(time.time())
    except (ValueError, KeyError, TypeError) as why:
        raise BadGenesis(str(store / GENESIS_FILE), str(why)) from None


def _print_started(
    settings: DevSettings,
    served: list[launch.ServedNetwork],
    started: launch.StartedService,
) -> None:
    """Print accounts first: the list is long, and the last lines stay in view."""
    chain = settings.chain
    if not chain.genesis:
        _print_accounts(chain)
        click.echo()
    for each, address, feed in zip(served, started.addresses, started.feeds, strict=True):
        assert each.network.dev is not None
        identity = "" if chain.genesis else f", chain id {each.network.dev.chain_id}"
        click.echo(f"{each.network.name}{identity}")
        if each.network.fork is not None:
            from foreblock.cli.forks import fork_line  # noqa: PLC0415, others need none

            click.echo(fork_line(chain, each.network.fork))
        if each.network.follow is not None:
            from foreblock.cli.forks import mirror_line  # noqa: PLC0415, others need none

            click.echo(mirror_line(each.network.follow))
        _print_table(_urls(settings.service, address.split(", "), feed))
    click.echo("WebSocket: the same addresses, with ws://")
    if settings.service.page:
        address = started.addresses[0].split(", ")[0]
        click.echo(f"a browser shows the chains at http://{address}")
    if started.metrics:
        click.echo(f"metrics at http://{started.metrics}/metrics")
    click.echo()
    if not chain.mirror:
        click.echo(
            f"a block every {chain.block_time:g} s, a flashblock every {chain.interval * 1e3:g} ms"
        )
    if chain.load:
        from foreblock.sequencer.load import first_of_load  # noqa: PLC0415, it loads much

        first, last = first_of_load(chain.accounts), chain.accounts - 1
        click.echo(f"{chain.load} transactions a second from the accounts {first} to {last}")
    where = settings.service.data or "a temporary directory, removed at the end"
    click.echo(f"data in {where}")
    if folder := _folder_off_path():
        click.echo("in another terminal, so that it finds this command:")
        click.echo(f"  export PATH={shlex.quote(folder)}:$PATH")
    click.echo("Ctrl-C stops it; see also `foreblock watch` and `foreblock send`")


def _urls(service: Settings, addresses: Sequence[str], feed: str) -> list[tuple[str, str]]:
    """The URLs of a network, and the tools for which each is."""
    if service.view == "sealed":
        rows = [(f"http://{each}", "any tool, unchanged") for each in addresses]
    else:
        rows = [(f"http://{each}/eth", FOR_ANY_TOOL) for each in addresses]
        rows += [(f"http://{each}", FOR_PENDING) for each in addresses]
    return rows + ([(f"ws://{feed}/ws", "flashblocks")] if feed else [])


def _print_table(rows: Sequence[tuple[str, str]]) -> None:
    width = max(len(first) for first, _ in rows)
    for first, text in rows:
        click.echo(f"  {first:<{width}}  {text}")


def _folder_off_path() -> str:
    """The folder of this installation's command if a shell does not find it; else empty."""
    command = Path(sys.executable).with_name(PROGRAM)
    found = shutil.which(PROGRAM)
    if not command.is_file() or (found is not None and command.samefile(found)):
        return ""
    return str(command.parent)


def _print_accounts(chain: ChainSettings) -> None:
    """Print each account with its key below, so that both fit into 80 columns."""
    click.echo(f"accounts with {chain.balance:,} ether each; their keys are public")
    count = min(chain.accounts, SHOWN_ACCOUNTS)
    shown = dev_accounts(chain.mnemonic, count, chain.derivation_path)
    for index, account in enumerate(shown):
        click.echo(f"{index:>3}  {checksum_address(account.address)}")
        click.echo(f"     {format_data(account.secret)}")
    if chain.accounts > SHOWN_ACCOUNTS:
        click.echo(f"     and {chain.accounts - SHOWN_ACCOUNTS} more")


def _print_stopped() -> None:
    """Print on a new line, below the ^C of a terminal."""
    click.echo("\nstopped" if sys.stdout.isatty() else "stopped")
