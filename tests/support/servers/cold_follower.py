"""A worker over a partial store, in this process, and the network that serves its requests."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foreblock._engine import Store
from foreblock.follow.worker_state import WorkerState
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.follow_rows import put_trust
from foreblock.scheduling.reply import Reply
from foreblock.service.network_views import Service, Shared, make_scheduler
from foreblock.settings import FollowSettings
from support.chains.partial_store import WholeNetwork, begin_at_latest
from support.servers.asking import ANYBODY, body_of, request, settings_with


class Follower:
    """A worker over a partial store, and the network that serves its requests."""

    def __init__(self, whole: Ledger, folder: Path, **told: Any) -> None:  # noqa: ANN401, settings
        most, dialect = told.pop("most", 1 << 30), told.pop("dialect", "ethereum")
        hint = told.pop("hint", None)
        if not told.pop("is_begun", False):
            begin_at_latest(whole, folder, has_body=told.pop("has_body", True))
        settings = FollowSettings(**{"fetch_timeout": 60.0, **told})
        with Store(str(folder), write=True) as store:
            put_trust(store, settings.trust)
        self.network = WholeNetwork(whole, most=most)
        self.ledger = Ledger.open(str(folder), followed=True)
        options = settings_with(dialect)
        self.scheduler = make_scheduler(options)
        self.state: WorkerState | None = None
        if settings.cold == "fetch":
            self.state = WorkerState(
                self.ledger,
                settings,
                self.network.ask,
                hint=hint,
                ask_upstream=self.network.ask_upstream,
            )
        shared = Shared(state=self.state)
        self.service = Service(self.ledger, options, self.scheduler, shared=shared)
        self.loop = asyncio.new_event_loop()

    def reply(self, body: bytes) -> Reply:
        return self.loop.run_until_complete(self._reply(body))

    def ask(self, method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
        answer = json.loads(self.reply(request(method, *params)).body)
        return answer["result"] if "result" in answer else answer["error"]

    async def _reply(self, body: bytes) -> Reply:
        reply = self.service.answer(body, ANYBODY)
        reply = reply if isinstance(reply, Reply) else await reply
        return Reply(body_of(reply), reply.headers)

    def close(self) -> None:
        self.scheduler.close()
        self.loop.close()
        self.ledger.close()


@contextmanager
def follower(whole: Ledger, folder: Path, **told: Any) -> Iterator[Follower]:  # noqa: ANN401
    """A follower from the latest block, or with `is_begun` over an existing store."""
    made = Follower(whole, folder, **told)
    try:
        yield made
    finally:
        made.close()
