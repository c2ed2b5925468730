"""A folder that is moved, removed or replaced under a running service."""

import json
import shutil
from pathlib import Path
from typing import Any

from support.servers.dev_processes import Dev, dev_chain, exchange
from support.servers.waiting import until

CONNECTIONS = 8  # enough to reach both workers
ASKED = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []})


def ask(url: str) -> tuple[int, Any]:
    """The commit of a response over a separate connection, or 0, and the response."""
    reply = exchange(url, "/", ASKED)
    return reply.commit, json.loads(reply.body)


class Client:
    """Sends requests over new connections, and checks that commits never decrease."""

    def __init__(self, dev: Dev) -> None:
        self._dev = dev
        self.commit = 0

    def answers(self) -> list[Any]:
        found = []
        for _ in range(CONNECTIONS):
            commit, answer = ask(self._dev.main.url)
            assert not commit or commit >= self.commit, "a commit went back"
            self.commit = max(self.commit, commit)
            found.append(answer)
        return found

    def await_unavailable(self, why: str) -> None:
        """Wait until every response is an error and every probe reports the reason."""

        def all_say_so() -> bool:
            messages = [each.get("error", {}).get("message", "") for each in self.answers()]
            probes = [self._dev.main.probe("/readyz?verbose") for _ in range(CONNECTIONS)]
            return all(each.startswith("the chain is not available") for each in messages) and all(
                status == 503 and why in text for status, text in probes
            )

        until(all_say_so, f"all clients get the error: {why}")

    def await_served(self) -> None:
        """Wait until every response is a result again, of a later commit."""
        last = self.commit
        until(lambda: all("result" in each for each in self.answers()), "all are answered")
        until(lambda: self.answers() and self.commit > last, "it continues")


def kill_some(dev: Dev) -> None:
    """The writer and one worker, whose successors start without memory."""
    gone = {dev.kill("writer"), dev.kill("worker")}
    until(
        lambda: (
            not gone & {*dev.pids("writer"), *dev.pids("worker")}
            and len(dev.pids("worker")) == 2
            and dev.pids("writer")
        ),
        "others take their places",
    )


def test_no_other_chain_and_no_older_commit_is_served_while_a_service_runs(tmp_path: Path) -> None:
    store, away, copy = (tmp_path / name for name in ("dev/main", "away", "copy"))
    options = ("--block-time=1", "--test-listen=", f"--data={tmp_path / 'dev'}")
    with dev_chain(*options) as dev:
        client = Client(dev)
        client.await_served()
        store.rename(away)
        client.await_unavailable("it was removed")
        shutil.copytree(away, copy)
        kill_some(dev)
        client.await_unavailable("it was removed")
        assert not store.exists(), "no chain is begun where one was served"
        away.rename(store)
        client.await_served()
        store.rename(away)
        copy.rename(store)
        client.await_unavailable("was served; restart the service")
