"""An endpoint with the sealed blocks of a store that another process writes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock

from foreblock.errors import StoreError
from foreblock.ledger.reading.view import Ledger
from support.servers.asking import Asker, asker
from support.servers.toy_endpoint import HttpRequest, Said, http_endpoint


@contextmanager
def canonical(store: Path) -> Iterator[str]:
    """Its address, from before the store exists."""
    ready: list[Asker] = []
    one_at_a_time = Lock()

    def reply(request: HttpRequest) -> Said:
        with one_at_a_time:
            try:
                if not ready:
                    ready.append(opened.enter_context(asker(Ledger.open(str(store)))))
            except StoreError as why:
                return Said(503, str(why).encode())
            body = ready[0].reply(request.body).body
        return Said(body=body, headers={"Content-Type": "application/json"})

    with ExitStack() as opened, http_endpoint(reply) as url:
        yield url
