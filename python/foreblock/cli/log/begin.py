"""`foreblock log begin`: a log made anew from one store."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foreblock.cli.log.options import THE_LOG, connected, log_options, run, which_log
from foreblock.cli.verb import STORE, failing_in_one_line, json_option, option, stop, verb

if TYPE_CHECKING:
    from foreblock.cli.log.beginning import Before, Begun


@verb("begin")
@click.argument("data", metavar="DIR", type=STORE)
@log_options
@THE_LOG(
    "--log-replicas",
    default=1,
    metavar="N",
    envvar="FOREBLOCK_LOG_REPLICAS",
    type=click.IntRange(1, 5),
    help="NATS servers that store the log.",
)
@option("--yes", is_flag=True, help="Ask nothing.")
@json_option()
def begin(*, data: Path, log_replicas: int, yes: bool, as_json: bool, **options: str) -> None:
    """Begin a log anew from the store in DIR.

    For a log that has lost acknowledged commits which no running node has, and for a store that
    was imported: the stream is deleted with all that is in it and made again, and this store is
    what the new log begins with. Every other node then has another history: it takes a snapshot
    from a node that has this store, and keeps its old store aside.

    Stop the writer, and start it with this store afterwards. Refused while a writer answers. The
    user of --log-credentials must be allowed to delete and create the stream.
    """
    with failing_in_one_line():
        which = which_log(options)
        from foreblock.cli.log import beginning  # noqa: PLC0415, it needs the libraries

        with beginning.open_store(data) as store:

            async def looking() -> "Before":
                async with connected(which) as connection:
                    return await beginning.look_before(connection, store)

            before = run(looking)
            if before.writer:
                stop(f"{before.writer}: stop it first", 1)
            if not yes:
                click.echo(explained(before), err=True)
                click.confirm("Begin the log anew?", abort=True, err=True)

            async def beginning_anew() -> "Begun":
                async with connected(which) as connection:
                    return await beginning.begin_log(connection, store, before, log_replicas)

            begun = run(beginning_anew)
    if as_json:
        fields = ("epoch", "commit", "sequence", "log_id", "link")
        click.echo(json.dumps({name: getattr(begun, name) for name in fields}))
        return
    click.echo(f"begun      log {begun.log_id}, epoch {begun.epoch}")
    click.echo(f"commit     {begun.commit}, sequence {begun.sequence}, link {begun.link[:16]}…")


def explained(before: "Before") -> str:
    """What beginning anew means here, for who is asked."""
    lines = [f"This store is at commit {before.commit}."]
    if before.messages is None:
        lines.append(f"There is no stream {before.stream}: it is created.")
    elif before.last is None:
        lines.append(f"The stream {before.stream} is empty.")
    else:
        last = before.last
        lines.append(
            f"The stream {before.stream} has {before.messages:,} messages and ends at commit"
            f" {last.commit} of epoch {last.epoch}, stored at {last.stored_at}. It is deleted."
        )
        if last.commit > before.commit:
            lost = last.commit - before.commit
            lines.append(f"{lost:,} commits of the log are not in this store, and are lost.")
    lines.append("All other nodes take a snapshot from a node with this store.")
    return "\n".join(lines)
