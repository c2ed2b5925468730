"""The plan of a cluster: unique ports, valid settings, all nodes connected."""

from pathlib import Path

from foreblock.cli.cluster.processes import ClusterOptions, plan_cluster
from foreblock.settings import DevSettings, ServeSettings
from foreblock.settings.loading import load

WANTED = ClusterOptions(Path("/folder"), "/bin/nats-server", 8600, 3, 20, 0.2)


def flags(command: tuple[str, ...]) -> dict[str, str | None]:
    pairs = (each.removeprefix("--").partition("=") for each in command if each.startswith("--"))
    return {name.replace("-", "_"): value for name, _, value in pairs}


def test_each_node_has_its_own_addresses_and_knows_the_log() -> None:
    plan = plan_cluster(WANTED)
    names = [each.name for each in plan.nodes]
    assert names == ["writer", "standby", "replica-1", "replica-2", "replica-3"]
    addresses = [each.address for each in (*plan.servers, *plan.nodes)]
    addresses += [each.snapshots for each in plan.nodes]
    assert len(set(addresses)) == len(addresses) == 13
    assert plan.log == "nats://127.0.0.1:8600,nats://127.0.0.1:8601,nats://127.0.0.1:8602"
    assert plan.urls[0] == "http://127.0.0.1:8610"
    for node in plan.nodes:
        given = flags(node.command)
        assert given["log"] == plan.log
        others = {f"http://{each.snapshots}" for each in plan.nodes if each is not node}
        assert set((given["snapshot_from"] or "").split(",")) == others


def test_settings_are_those_of_the_commands() -> None:
    plan = plan_cluster(WANTED)
    for node in plan.writers:
        assert "dev" in node.command
        settings = load(DevSettings, flags(node.command), {}).settings
        assert (settings.replication.log_replicas, settings.chain.load) == (3, 20)
        assert settings.test_listen == ""
    for node in plan.replicas:
        assert "serve" in node.command
        settings_of_replica = load(ServeSettings, flags(node.command), {}).settings
        assert settings_of_replica.chain.source == "log"


def test_servers_of_the_log_know_each_other_and_sync_what_they_acknowledge() -> None:
    plan = plan_cluster(WANTED)
    for number, server in enumerate(plan.servers):
        assert f"listen: 127.0.0.1:{8600 + number}\n" in server.config
        assert f"listen: 127.0.0.1:{8603 + number}," in server.config
        assert all(f"nats://127.0.0.1:{port}" in server.config for port in (8603, 8604, 8605))
        assert "sync_interval: always" in server.config
        assert server.command == ("/bin/nats-server", "-c", f"/folder/nats-{number + 1}/nats.conf")
