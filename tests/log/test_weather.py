"""Many faults in any order on a real server: one history in every case.

Three nodes write in turn without coordination, the server is killed, its store is reset to an
earlier state. An acknowledged commit must stay in the log, no two nodes may hold different commits
at one position, and all must converge to the same list.
"""

import asyncio
from pathlib import Path
from random import Random

import pytest

from foreblock.errors import Deposed, LogError
from support.servers.log_nodes import Node, node
from support.servers.nats_servers import NatsServer


class Weather:
    """A server, three nodes, and the content of each commit number."""

    def __init__(self, server: NatsServer, nodes: list[Node], chance: Random) -> None:
        self._server = server
        self._nodes = nodes
        self._chance = chance
        self._history: dict[int, bytes] = {}
        self._saved: Path | None = None
        self.done: list[str] = []

    async def step(self) -> None:
        kind = self._chance.choices(["write", "kill", "save", "lose", "follow"], [12, 2, 2, 2, 4])[
            0
        ]
        self.done.append(kind)
        await getattr(self, f"_{kind}")()
        self._check()

    async def _write(self) -> None:
        """Write after reading to the end, or be deposed."""
        writer = self._chance.choice(self._nodes)
        body = self._chance.randbytes(self._chance.choice([10, 1000, 1_500_000]))
        is_takeover = self._chance.random() < 0.5
        if is_takeover:
            await writer.catch_up()
        epoch = writer.position.epoch + 1 if is_takeover else max(1, writer.position.epoch)
        try:
            await writer.write(body, epoch=epoch)
        except Deposed:
            await writer.catch_up()

    async def _kill(self) -> None:
        self._server.kill()
        self._server.start()

    async def _save(self) -> None:
        self._server.kill()
        if self._saved is None:
            self._saved = self._server.save()
        self._server.start()

    async def _lose(self) -> None:
        """Lose the end; the node with the most commits writes next and repairs the log."""
        if self._saved is None:
            return
        first = max(self._nodes, key=lambda each: each.position.sequence)
        self._server.kill()
        self._server.restore(self._saved)
        self._saved = None
        self._server.start()
        await first.write(b"after a loss")

    async def _follow(self) -> None:
        await self._chance.choice(self._nodes).catch_up()

    def _check(self) -> None:
        for each in self._nodes:
            for number, link in enumerate(each.links, start=1):
                assert self._history.setdefault(number, link) == link, f"two commits {number}"

    async def end(self) -> None:
        for each in self._nodes:
            await each.catch_up()
        self._check()
        one, *others = (each.links for each in self._nodes)
        assert all(other == one for other in others)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(3))
def test_one_history(server: NatsServer, seed: int) -> None:
    async def run() -> None:
        async with node(server.url) as one, node(server.url) as two, node(server.url) as three:
            weather = Weather(server, [one, two, three], Random(seed))
            try:
                for _ in range(40):
                    await weather.step()
                await weather.end()
            except (AssertionError, LogError) as why:
                why.add_note(f"seed {seed}: {' '.join(weather.done)}")
                raise
            assert len(one.links) >= 10

    asyncio.run(run())
