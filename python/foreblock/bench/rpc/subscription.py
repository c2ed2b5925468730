"""A subscription on a WebSocket connection of its own, read without threads.

The caller waits for the socket, and so knows when a notification arrives.
"""

import json
import socket
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.frames import Frame
from websockets.protocol import State
from websockets.uri import parse_uri

from foreblock.errors import NotAnAnswer

Json = Any

CHUNK: Final = 1 << 16


class BenchSubscription:
    """A WebSocket connection with one subscription."""

    def __init__(self, url: str, params: Sequence[Json]) -> None:
        parts = urlsplit(url)
        self.socket: Final = socket.create_connection((parts.hostname, parts.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        place = parse_uri(parts._replace(scheme="ws").geturl())
        self._protocol: Final = ClientProtocol(place, max_size=None)
        self._protocol.send_request(self._protocol.connect())
        self._flush()
        self._text = bytearray()
        while self._protocol.state is State.CONNECTING:
            self._receive()
            if self._protocol.handshake_exc is not None:
                raise NotAnAnswer(url, str(self._protocol.handshake_exc))
        envelope = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": params}
        self._protocol.send_text(json.dumps(envelope).encode())
        self._flush()
        while not (replies := self._receive()):
            pass
        if "result" not in replies[0]:
            raise NotAnAnswer(url, str(replies[0]))

    def told(self) -> list[Json]:
        """The results of notifications that have arrived; waits if there is nothing to read."""
        return [each["params"]["result"] for each in self._receive() if "params" in each]

    def _receive(self) -> list[Json]:
        data = self.socket.recv(CHUNK)
        if not data:
            raise NotAnAnswer("the subscription", "it closed the connection")
        self._protocol.receive_data(data)
        messages = []
        for event in self._protocol.events_received():
            if isinstance(event, Frame) and event.opcode < 8:  # not a control frame
                self._text += event.data
                if event.fin:
                    messages.append(json.loads(self._text))
                    self._text.clear()
        self._flush()
        return messages

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            self.socket.sendall(data)
