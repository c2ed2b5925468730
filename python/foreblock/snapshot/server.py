"""The HTTP address at which stores can be fetched, on threads of its own: `GET /NETWORK`.

A network offers its store when it has opened it and withdraws it before it closes it; a copy in
progress is aborted then, since closing a store waits for its readers. One snapshot is sent at a
time: a second client gets 503 with `Retry-After`, and asks another node or later. Nothing here
runs on the loop of the process, and little of it needs the interpreter, so commits go on.
"""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from threading import BoundedSemaphore, Condition, Lock, Thread
from typing import Final

import structlog

from foreblock.errors import ForeblockError, StoreError, UnfitSnapshot
from foreblock.ledger.storage.open_store import Store
from foreblock.snapshot.sending import SendLimits, header_of, send_snapshot

log = structlog.get_logger()


class SnapshotOffers:
    """The stores that can be sent. Any thread may call any method."""

    def __init__(self) -> None:
        self._changed: Final = Condition()
        self._stores: Final[dict[str, Store]] = {}
        self._copied: Final[dict[Store, Callable[[], None]]] = {}  # and what cuts each copy

    def offer(self, name: str, store: Store) -> None:
        """Serve this store to nodes that request its name."""
        with self._changed:
            self._stores[name] = store

    def withdraw(self, name: str) -> None:
        """Send it no more; returns when nobody copies it."""
        with self._changed:
            store = self._stores.pop(name, None)
            if store is not None:
                self._copied.get(store, lambda: None)()
                self._changed.wait_for(lambda: store not in self._copied)

    def is_offered(self, name: str, store: Store) -> bool:
        """Return true if a store may still be sent; checked before each piece."""
        return self._stores.get(name) is store

    @contextmanager
    def copying(self, name: str, cut: Callable[[], None]) -> Iterator[Store | None]:
        """The store of a name, open until the context ends; None if there is none.

        `cut` is called on another thread when the store is withdrawn.
        """
        with self._changed:
            store = self._stores.get(name)
            if store is not None:
                self._copied[store] = cut
        try:
            yield store
        finally:
            with self._changed:
                if store is not None:
                    del self._copied[store]
                self._changed.notify_all()


CONNECTIONS: Final = 16  # that are answered at once; others wait in the queue of the system
HEAD_SECONDS: Final = 5.0
HEAD_BYTES: Final = 8192
RETRY_SECONDS: Final = 5
TURN_SECONDS: Final = 0.5  # that a client waits for one that has all but its end


class SnapshotServer:
    """Answers at one address until it is stopped."""

    def __init__(
        self, listening: socket.socket, offers: SnapshotOffers, limits: SendLimits | None = None
    ) -> None:
        """`listening` is this server's own from here on."""
        self._listening: Final = listening
        self._offers: Final = offers
        self._limits: Final = limits or SendLimits()
        self._turn: Final = Lock()
        self._places: Final = BoundedSemaphore(CONNECTIONS)
        self._stopped = False

    def start(self) -> None:
        """Answer from now on."""
        self._listening.settimeout(None)
        Thread(target=self._accept, name="foreblock-snapshots", daemon=True).start()

    def stop(self) -> None:
        """Accept no more clients; `withdraw` ends the running transfers."""
        self._stopped = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while not self._stopped:
            self._places.acquire()
            try:
                client, _ = self._listening.accept()
            except OSError as why:
                self._places.release()
                if not self._stopped:
                    log.warning("snapshot_client_not_accepted", why=str(why))
                continue
            Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, suppress(OSError):
                self._answer(client)
        finally:
            self._places.release()

    def _answer(self, client: socket.socket) -> None:
        name = _requested_name(_read_head(client))
        if name is None:
            _refuse(client, HTTPStatus.METHOD_NOT_ALLOWED, "only GET /NETWORK is served")
        elif not self._turn.acquire(timeout=TURN_SECONDS):
            _refuse(client, HTTPStatus.SERVICE_UNAVAILABLE, "another snapshot is being sent")
        else:
            try:
                self._send(name, client)
            finally:
                self._turn.release()

    def _send(self, name: str, client: socket.socket) -> None:
        with self._offers.copying(name, lambda: _shut(client)) as store:
            if store is None:
                _refuse(client, HTTPStatus.NOT_FOUND, "there is no such network here")
                return
            try:
                header = header_of(store)
            except UnfitSnapshot as why:
                _refuse(client, HTTPStatus.CONFLICT, str(why))
                return
            except StoreError as why:
                _refuse(client, HTTPStatus.SERVICE_UNAVAILABLE, str(why))
                return
            log.info("snapshot_requested", network=name, commit=header.commit, bytes=header.length)
            try:
                sent = send_snapshot(
                    store, header, client, self._limits, lambda: self._may_go_on(name, store)
                )
            except (ForeblockError, OSError) as why:
                log.warning("snapshot_not_sent", network=name, why=str(why))
            else:
                log.info("snapshot_sent", network=name, commit=header.commit, bytes=sent)

    def _may_go_on(self, name: str, store: Store) -> bool:
        return not self._stopped and self._offers.is_offered(name, store)


def _shut(client: socket.socket) -> None:
    """End what a thread sends to a client, also where that waits."""
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)


def _read_head(client: socket.socket) -> bytes:
    """The head of a request. Raises `OSError` on a timeout or an oversized head."""
    until, head = time.monotonic() + HEAD_SECONDS, b""
    while b"\r\n\r\n" not in head:
        client.settimeout(max(0.001, until - time.monotonic()))
        piece = client.recv(HEAD_BYTES)
        head += piece
        if not piece or len(head) > HEAD_BYTES:
            raise ConnectionAbortedError
    return head


def _requested_name(head: bytes) -> str | None:
    """The name that a request asks for; none if it is no GET of a name."""
    match head.partition(b"\r\n")[0].split(b" "):
        case [b"GET", path, b"HTTP/1.1" | b"HTTP/1.0"] if path.startswith(b"/"):
            return path[1:].partition(b"?")[0].decode("latin-1")
        case _:
            return None


def _refuse(client: socket.socket, status: HTTPStatus, why: str) -> None:
    text = f"{why}\n".encode()
    more = f"Retry-After: {RETRY_SECONDS}\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain\r\n{more}"
        f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    )
    client.sendall(head.encode() + text)
