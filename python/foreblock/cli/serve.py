"""`foreblock serve`: serve networks, each at its own address."""

import foreblock.starting  # noqa: F401, before all others

# isort: split
import sys
from collections.abc import Sequence
from typing import Final

import click

from foreblock.cli.config import PORT_OPTION, CommandLine, at_port, loaded, settings_options
from foreblock.cli.verb import INTERRUPTED, failing_in_one_line, verb
from foreblock.errors import BadSetting
from foreblock.feed.wire import check_url
from foreblock.service import launch
from foreblock.settings import ReplicationSettings, ServeSettings
from foreblock.settings.networks import (
    Network,
    NetworkSettings,
    followed_network,
    log_of,
    networks_of,
)
from foreblock.upstream.http import split_http_url

# In the short help, in this order.
EVERYDAY: Final = (
    "data", "port", "source", "genesis", "feed", "canonical", "log", "network", "chain",
    "upstream", "hosts", "cors_origins", "workers", "config_file",
)  # fmt: skip
EXAMPLES: Final = (
    "foreblock serve --data build/store --port 18545",
    "foreblock serve --data DIR --source feed --genesis FILE --feed ws://HOST/ws",
    "foreblock serve --data DIR --source log --log nats://HOST:4222",
)


@verb(everyday=EVERYDAY, examples=EXAMPLES)
@settings_options(ServeSettings)
@PORT_OPTION
def serve(given: CommandLine, *, port: int | None) -> None:
    """Serve a chain from a store, a feed, a log, or upstreams.

    With --source feed the chain follows one or several feeds: give --genesis FILE and --feed URL,
    and --canonical URL for sealed blocks that the feeds do not prove.

    With --source log it is a replica: it follows the commits that a writer on another machine
    appends to the log on the NATS servers of --log. With --source feed and --log it writes that
    log, or stands by.

    With --source follow it follows a public chain without running a node: give --chain NAME and
    --upstream URL, as for foreblock follow.

    To serve several networks, give each its own settings, as in
    --network main.listen=127.0.0.1:8545 --network test.listen=127.0.0.1:9545, or a table
    [network.NAME] in foreblock.toml. A network may have its own data, listen, source, genesis,
    feed, canonical, accept_state_edits, feed_listen, keep_states, keep_partials, keep_nodes,
    address_index, map_size, max_readers, log and the other settings of replication.

    Ctrl-C or SIGTERM stops it after accepted requests are answered; a second one stops it at once.

    Every option is also a setting in foreblock.toml and an environment variable, as in
    FOREBLOCK_LISTEN; docs/settings.md has details. Lists are separated by commas, or repeat the
    option.
    """
    with failing_in_one_line():
        settings = at_port(loaded(given, ServeSettings), port)
        if port is not None and settings.chain.network:
            raise click.UsageError("--port is for one network: give each its own listen")
        networks = networks_of(settings)
        alone = not settings.chain.network
        served = [_network(network, alone=alone) for network in networks]
        names = [""] if alone else [f"{network.name}: " for network in networks]
        cut_short = launch.run(
            settings.service, served, lambda started: _print_started(names, started)
        )
    if cut_short:
        sys.exit(INTERRUPTED)


def _network(wanted: NetworkSettings, *, alone: bool) -> launch.ServedNetwork:
    """A network and its addresses; error messages name it unless it is alone."""
    option = "--" if alone else f"--network {wanted.name}."
    settings = wanted.settings
    service, chain = settings.service, settings.chain
    if not service.data:
        raise click.UsageError(f"{option}data is required: the directory of a store")
    if chain.source not in ("feed", "follow") and chain.feed:
        raise click.UsageError(f"{option}feed needs {option}source=feed")
    if chain.source == "store":
        if settings.replication.log:
            raise BadSetting("log", "a store alone has no log: source is log or feed")
        network = Network(
            name=wanted.name,
            data=service.data,
            source="store",
            store=service.store,
            dialect=service.dialect,
            view=service.view,
        )
        return launch.ServedNetwork(network, service.listen)
    log = log_of(wanted.name, settings.replication)
    if chain.source == "log":
        return _replica(wanted, log)
    if chain.source == "follow":
        return _follower(wanted, option)
    if not settings.genesis or not chain.feed:
        raise click.UsageError(f"{option}source=feed needs {option}genesis and {option}feed")
    for url in chain.feed:
        check_url(url)
    if chain.canonical:
        split_http_url(chain.canonical)
    network = wanted.network("feed", log=log)
    return launch.ServedNetwork(network, service.listen, settings.feed_listen)


def _replica(wanted: NetworkSettings, log: ReplicationSettings | None) -> launch.ServedNetwork:
    """A network whose commits come from a log."""
    if log is None:
        raise BadSetting("source", "log needs the setting log: the NATS servers of the log")
    if wanted.settings.feed_listen:
        raise BadSetting("feed_listen", "a replica passes no flashblocks on")
    return launch.ServedNetwork(wanted.network("log", log=log), wanted.settings.service.listen)


def _follower(wanted: NetworkSettings, option: str) -> launch.ServedNetwork:
    """A network that follows a public chain."""
    settings = wanted.settings
    if not settings.follow.chain or not settings.follow.upstream:
        raise click.UsageError(f"{option}source=follow needs {option}chain and {option}upstream")
    if settings.replication.log:
        raise BadSetting("log", "a chain that is followed from upstreams has no log")
    return launch.ServedNetwork(
        followed_network(wanted), settings.service.listen, settings.feed_listen
    )


def _print_started(names: Sequence[str], started: launch.StartedService) -> None:
    noun = "worker" if started.workers == 1 else "workers"
    for name, address, feed in zip(names, started.addresses, started.feeds, strict=True):
        click.echo(f"{name}listening on http://{address} with {started.workers} {noun}")
        if feed:
            click.echo(f"{name}flashblocks at ws://{feed}/ws")
    click.echo("WebSocket: same address. Use /eth for tools that expect a standard node")
    if started.metrics:
        click.echo(f"metrics at http://{started.metrics}/metrics")
