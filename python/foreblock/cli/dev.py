"""`foreblock dev`: two chains with real flashblocks, in one command."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from foreblock.cli.failure import INTERRUPTED, failing_in_one_line
from foreblock.cli.settings_options import Given, loaded, settings_options
from foreblock.ledger.rules.addresses import checksum_address
from foreblock.primitives import format_data
from foreblock.sequencer.faults import Faults
from foreblock.sequencer.load import first_of_load
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.service import launch
from foreblock.service.temporary import PREFIX, temporary_folder
from foreblock.settings import DEFAULT, ChainSettings, DevSettings, Loaded
from foreblock.settings.network import DevChain, Network
from foreblock.settings.networks import check_kept

ETHER: Final = 10**18
WORKER_NICE: Final = 5  # so far workers step back behind the writer, unless told otherwise
SHOWN_ACCOUNTS: Final = 10


@click.command()
@settings_options(DevSettings)
def dev(given: Given) -> None:
    """Run a main and a test network whose pending block grows every 200 ms.

    Every setting is an option; docs/settings.md explains them, docs/dev-chain.md the chains.
    Without --data the chains are new each time and end with the command. Stop with Ctrl-C.
    """
    with failing_in_one_line():
        settings = _settled(loaded(given, DevSettings))
        Faults.parse(settings.chain.faults)  # refuses what is none
        with _folder(settings.service.data) as folder:
            places = _places(settings, folder)
            kept = bool(settings.service.data)
            cut_short = launch.run(
                settings.service, places, lambda started: _say(settings, places, started, kept=kept)
            )
    if cut_short:
        sys.exit(INTERRUPTED)
    _say_stopped()


def _settled(found: Loaded[DevSettings]) -> DevSettings:
    """The settings, with what is another default here than elsewhere."""
    settings = found.settings
    if found.origins["nice"] == DEFAULT:
        settings = replace(settings, service=replace(settings.service, nice=WORKER_NICE))
    return settings


@contextmanager
def _folder(data: str) -> Iterator[Path]:
    if data:
        yield Path(data)
    else:
        with temporary_folder(PREFIX + "dev-") as folder:
            yield folder


def _places(settings: DevSettings, folder: Path) -> list[launch.Place]:
    places = [_place("main", 0, settings, folder, settings.service.listen, settings.feed_listen)]
    if settings.test_listen:
        places.append(
            _place("test", 1, settings, folder, settings.test_listen, settings.test_feed_listen)
        )
    return places


def _place(
    name: str, position: int, settings: DevSettings, folder: Path, listen: str, feed: str
) -> launch.Place:
    chain = settings.chain
    check_kept(settings.keep.states, settings.keep.partials)
    network = Network(
        name=name,
        data=str(folder / name),
        source="dev",
        keep_states=settings.keep.states,
        keep_partials=settings.keep.partials,
        keep_nodes=settings.keep.nodes,
        map_size=settings.service.store.map_size,
        max_readers=settings.service.store.max_readers,
        dev=DevChain(
            genesis=str(Path(chain.genesis).absolute()) if chain.genesis else "",
            chain_id=chain.chain_id + position,
            mnemonic=chain.mnemonic,
            accounts=chain.accounts,
            balance=chain.balance * ETHER,
            gas_limit=chain.gas_limit,
            transaction_gas=chain.transaction_gas,
            base_fee=chain.base_fee,
            block_time=chain.block_time,
            interval_ms=round(chain.interval * 1000),
            seed=chain.seed + position,
            instant=chain.instant,
            load=chain.load,
            faults=list(chain.faults),
        ),
    )
    return launch.Place(network, listen, feed)


def _say(
    settings: DevSettings, places: list[launch.Place], started: launch.Started, *, kept: bool
) -> None:
    """Accounts first: the list is long, and what is printed last is what stays in view."""
    chain = settings.chain
    if not chain.genesis:
        _say_accounts(chain)
        click.echo()
    for place, address, feed in zip(places, started.addresses, started.feeds, strict=True):
        assert place.network.dev is not None
        identity = "" if chain.genesis else f"   chain id {place.network.dev.chain_id}"
        click.echo(f"{place.network.name:<5} http://{address}{identity}")
        if feed:
            click.echo(f"      ws://{feed}/ws   flashblocks")
    click.echo()
    click.echo(
        f"a block every {chain.block_time} s, a flashblock every {chain.interval * 1e3:g} ms"
    )
    if chain.load:
        first, last = first_of_load(chain.accounts), chain.accounts - 1
        click.echo(f"{chain.load} transactions a second from the accounts {first} to {last}")
    where = settings.service.data if kept else "a temporary folder, gone when this ends"
    click.echo(f"data in {where}")
    click.echo("Ctrl-C stops; `foreblock watch` shows what goes on, `foreblock send` sends")


def _say_accounts(chain: ChainSettings) -> None:
    """An account and below it its key, which leaves both whole in 80 columns."""
    click.echo(f"accounts with {chain.balance:,} ether each; everybody knows their keys")
    shown = dev_accounts(chain.mnemonic, min(chain.accounts, SHOWN_ACCOUNTS))
    for index, account in enumerate(shown):
        click.echo(f"{index:>3}  {checksum_address(account.address)}")
        click.echo(f"     {format_data(account.secret)}")
    if chain.accounts > SHOWN_ACCOUNTS:
        click.echo(f"     and {chain.accounts - SHOWN_ACCOUNTS} more")


def _say_stopped() -> None:
    """Below the ^C that a terminal shows."""
    click.echo("\nstopped" if sys.stdout.isatty() else "stopped")
