"""One chain on several machines: a writer, a standby and a replica, killed and stopped.

Every machine is a whole service in separate processes, and the log is a real NATS server.
"""

import re
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from foreblock._engine import Message, sign_transaction
from support.payloads.dev_state import ACCOUNTS
from support.servers.dev_processes import Network, RpcError
from support.servers.log_services import (
    KEEP,
    RoamingClient,
    Service,
    read_log_to_end,
    service,
    tables,
)
from support.servers.nats_servers import NatsServer
from support.servers.waiting import until

PAYEE = bytes(19) + b"\xaa"
GWEI = 10**9
DEV = [
    "dev", "--test-listen=", "--feed-listen=", "--block-time=1", "--interval=0.1", "--load=40",
    "--faults=restart=0.05,tail=0.2,reorg=0.1", *KEEP,
]  # fmt: skip


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path / "nats")
    server.start()
    yield server
    server.kill()


class Fleet:
    """Machines of one network."""

    def __init__(self, folder: Path, nats: NatsServer) -> None:
        self.folder = folder
        self.log = f"--log={nats.url}"

    def node(self, name: str, *words: str) -> AbstractContextManager[Service]:
        output = self.folder / f"{name}.{len(list(self.folder.glob('*.log')))}.log"
        return service(output, *words, self.log, f"--data={self.folder / name}")

    def dev(self, name: str, *words: str) -> AbstractContextManager[Service]:
        return self.node(name, *DEV, *words)

    def replica(self, name: str) -> AbstractContextManager[Service]:
        return self.node(name, "serve", "--source=log", *KEEP)


def pay(network: Network) -> tuple[str, int]:
    """Send from the first account; return the hash and the nonce."""
    who = ACCOUNTS[0]
    nonce = int(network.ask("eth_getTransactionCount", "0x" + who.address.hex(), "pending"), 16)
    message = Message(
        sender=who.address, to=PAYEE, value=7, gas=21_000,
        max_fee_per_gas=10 * GWEI, max_priority_fee_per_gas=GWEI,
    )  # fmt: skip
    raw = sign_transaction(message, 2, 31337, nonce, who.secret).raw
    return network.ask("eth_sendRawTransaction", "0x" + raw.hex()), nonce


@pytest.mark.heavy
def test_a_chain_goes_on_whoever_is_killed(tmp_path: Path, nats: NatsServer) -> None:
    fleet = Fleet(tmp_path, nats)
    with ExitStack() as opened, RoamingClient() as roamer:
        first = opened.enter_context(fleet.dev("a", "--takeover=0.5"))
        replica = opened.enter_context(fleet.replica("r"))
        roamer.networks = [first.network, replica.network]

        # A transaction at the replica is in a block, and its nonce is known immediately.
        sent, nonce = pay(replica.network)
        who = "0x" + ACCOUNTS[0].address.hex()
        after = replica.network.ask("eth_getTransactionCount", who, "pending")
        assert int(after, 16) == nonce + 1
        until(lambda: first.network.ask("eth_getTransactionReceipt", sent), "it is in a block")
        until(lambda: replica.network.ask("eth_getTransactionReceipt", sent), "the replica has it")
        with pytest.raises(RpcError) as refused:
            replica.network.ask("anvil_mine")
        assert "writes" in refused.value.message

        # Without a writer, nothing is pending on the replica after two block times.
        until(replica.is_ready, "the replica is ready")
        first.kill()
        until(lambda: not replica.is_ready(), "pending ends on the replica")
        last = replica.network.commit

        # A new writer reads the log and continues it.
        second = opened.enter_context(fleet.dev("b", "--takeover=0.5"))
        roamer.networks = [replica.network, second.network]
        second.until_epoch(2, "this node writes")
        replica.until_commit(last + 3)
        replica.until_epoch(2, "writer reachable")

        # The former writer stands by, and takes over when the other one is suspended.
        again = opened.enter_context(fleet.dev("a", "--takeover=0.5"))
        roamer.networks = [replica.network, second.network, again.network]
        again.until_epoch(2, "writer reachable")
        second.signal_writer(signal.SIGSTOP)
        again.until_epoch(3, "this node writes")
        second.signal_writer(signal.SIGCONT)
        second.until_epoch(3, "writer reachable")
        assert "log_deposed" in second.output()
        until(replica.is_ready, "the replica is ready")
        seen = roamer.answers
        until(lambda: roamer.answers > seen + 30, "a client goes around")
        for each in (replica, second, again):
            each.stop()
    assert not roamer.wrong
    stores = [tmp_path / "a" / "main", tmp_path / "b" / "main", tmp_path / "r"]
    for store in stores:
        read_log_to_end(store, nats.url)
    one, *others = map(tables, stores)
    assert all(one[name] for name in ("flat", "codes", "sealed", "rows"))
    for other in others:
        for name, rows in one.items():
            assert other[name] == rows, name


@pytest.mark.heavy
def test_a_writer_waits_for_its_log(tmp_path: Path, nats: NatsServer) -> None:
    """Nothing is served that is not in the log, and no standby takes over meanwhile."""
    fleet = Fleet(tmp_path, nats)
    with fleet.dev("a", "--takeover=0.5") as writer, fleet.dev("b", "--takeover=0.5") as standby:
        standby.until_epoch(1, "writer reachable")
        nats.kill()
        until(lambda: not writer.is_ready(), "nothing is pending without a log")
        writer.network.ask("eth_chainId")
        at = writer.network.commit
        until(lambda: "waits for the log" in writer.log()[2], "it reports that it waits")
        nats.start()
        writer.until_commit(at + 5)
        standby.until_commit(at + 5)
        assert writer.log()[0] == 1
        writer.stop()
        assert writer.process.returncode == 0
        standby.until_epoch(2, "this node writes")


@pytest.mark.heavy
def test_a_standby_with_feeds_goes_on_as_after_a_restart(tmp_path: Path, nats: NatsServer) -> None:
    fleet = Fleet(tmp_path, nats)
    words = ["--test-listen=", "--feed-listen=127.0.0.1:0", "--block-time=1", "--load=40"]
    with ExitStack() as opened:
        chain = opened.enter_context(
            service(tmp_path / "chain.log", "dev", f"--data={tmp_path / 'chain'}", *words)
        )
        (feed,) = re.findall(r"ws://\S+", chain.output())
        followed = [
            "serve", "--source=feed", f"--genesis={tmp_path / 'chain' / 'main' / 'genesis.json'}",
            f"--feed={feed}", f"--canonical={chain.network.url}", "--takeover=0.5", *KEEP,
        ]  # fmt: skip
        first = opened.enter_context(fleet.node("a", *followed))
        second = opened.enter_context(fleet.node("b", *followed))
        second.until_epoch(1, "writer reachable")
        until(second.is_ready, "the standby is ready")
        first.kill()
        second.until_epoch(2, "this node writes")
        at = chain.network.latest()
        until(lambda: second.network.latest() > at, "it follows the feed")
        until(second.is_ready, "it is ready")
        block = hex(second.network.latest())
        ask = ("eth_getBlockByNumber", block, False)
        assert second.network.ask(*ask) == chain.network.ask(*ask)
        assert "feed: " in second.network.probe("/readyz?verbose")[1]
