"""The files of deploy/ for several machines: valid settings, sufficient permissions."""

import asyncio
import re
from pathlib import Path

import pytest
from nats.aio.msg import Msg

from foreblock.clock import SystemClock
from foreblock.errors import LogError
from foreblock.log.node_messages import Announcer, ask_writer
from foreblock.settings import DevSettings, ServeSettings
from foreblock.settings.loading import load
from support.servers.log_nodes import BOOT, node
from support.servers.nats_servers import NatsServer

PASSWORDS = {"WRITER_PASSWORD": "w-secret", "REPLICA_PASSWORD": "r-secret"}


def environment(checkout: Path, block: str) -> dict[str, str]:
    """The variables of a node: those of the image, overridden by those of the composition."""
    image = (checkout / "deploy" / "Dockerfile").read_text("utf-8")
    found = dict(re.findall(r"\b(FOREBLOCK_\w+)=(\S+)", image))
    text = (checkout / "deploy" / "compose.yml").read_text("utf-8")
    (lines,) = re.findall(rf"^x-{block}: &{block}\n((?:  .*\n)+)", text, re.MULTILINE)
    for name, value in re.findall(r"^  (FOREBLOCK_\w+): (.*?)(?: #.*)?$", lines, re.MULTILINE):
        found[name] = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", value).strip('"')
    return found


def test_the_writer_and_the_standby_have_settings_of_a_writer(checkout: Path) -> None:
    settings = load(DevSettings, {}, environment(checkout, "writer")).settings
    assert settings.test_listen == ""
    assert settings.replication.log_replicas == len(settings.replication.log) == 3
    assert settings.replication.log[0] == "nats://writer:writer@nats-1:4222"
    assert len(settings.replication.snapshot_from) == 4


def test_replicas_have_settings_of_a_replica(checkout: Path) -> None:
    settings = load(ServeSettings, {"source": "log"}, environment(checkout, "replica")).settings
    assert settings.chain.source == "log"
    assert settings.replication.log[2] == "nats://replica:replica@nats-3:4222"
    assert settings.replication.snapshot_listen == "0.0.0.0:8550"
    assert settings.service.listen == "0.0.0.0:8545"


def test_the_composition_has_every_part_once(checkout: Path) -> None:
    text = (checkout / "deploy" / "compose.yml").read_text("utf-8")
    services = re.findall(r"^  ([a-z0-9-]+):\n    <<: \*(nats|node)$", text, re.MULTILINE)
    assert services == [
        ("nats-1", "nats"), ("nats-2", "nats"), ("nats-3", "nats"),
        ("writer", "node"), ("standby", "node"), ("replica-1", "node"), ("replica-2", "node"),
    ]  # fmt: skip
    commands = re.findall(r"^    command: (\[.*\])$", text, re.MULTILINE)
    assert commands[-4:] == ["[dev]", "[dev]", *["[serve, --source, log]"] * 2]
    proxied = re.findall(r"server (\S+):8545", (checkout / "deploy/cluster/nginx.conf").read_text())
    assert proxied == ["replica-1", "replica-2"]
    for name in re.findall(r"- \./(cluster/\S+?):/", text):
        assert (checkout / "deploy" / name).is_file()


@pytest.mark.parametrize("file", ["deploy/cluster/nats.conf", "docs/cluster.md"])
def test_users_may_do_what_they_need_and_replicas_may_not_write(
    checkout: Path, tmp_path: Path, file: str
) -> None:
    """Permissions of the docs and of the file agree and work on a real server."""
    text = (checkout / file).read_text("utf-8")
    (block,) = re.findall(r"^authorization \{\n.*?^\}\n", text, re.DOTALL | re.MULTILINE)
    for name, secret in PASSWORDS.items():
        block = block.replace(f"${name}", secret)
    server = NatsServer(tmp_path / "nats", more=block)
    server.start()
    place = server.url.removeprefix("nats://")

    async def work() -> None:
        async with (
            node(f"nats://writer:w-secret@{place}") as writer,
            node(f"nats://replica:r-secret@{place}", make=False) as replica,
        ):
            await writer.write(b"first")
            announcer = Announcer(
                writer.connection, writer.appender, writer.position, BOOT, SystemClock()
            )
            answering = asyncio.create_task(announcer.run())
            await replica.connection.check_stream()
            async with replica.following() as task:
                await replica.until_level(writer, task)
                await writer.write(b"second" * 400_000)  # in parts
                await replica.until_level(writer, task)
                head = await ask_writer(replica.connection, 1)
                assert head.epoch == 1
            for subject in ("fb.main.log", "fb.main.head", "$JS.API.STREAM.DELETE.FB_main"):
                with pytest.raises(LogError):
                    await replica.connection.request(subject, b"forged", seconds=0.2)
            heard: list[Msg] = []

            async def hear(message: Msg) -> None:
                heard.append(message)

            await replica.connection.subscribe("_INBOX.>", hear)
            await replica.connection.subscribe("_INBOX.writer.>", hear)
            assert (await ask_writer(replica.connection, 1)).epoch == 1  # it is subscribed
            assert (await writer.connection.state()).last == writer.position.sequence
            assert (await ask_writer(replica.connection, 1)).epoch == 1
            assert not heard
            answering.cancel()

    try:
        asyncio.run(work())
    finally:
        server.kill()
