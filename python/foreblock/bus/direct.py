"""Both ends of the bus in one process: what one says, the other hears at once. No I/O.

A message is handed over as it is; only what is said to several workers is a frame.
"""

import asyncio
from abc import ABC, abstractmethod

from msgspec import Struct

from foreblock.bus.frames import Print, Refused, Rejected, frame


class DirectEnd(asyncio.Protocol, ABC):
    """An end of the bus to which messages can be handed."""

    @abstractmethod
    def heard(self, message: Struct) -> None:
        """Take a message."""


class DirectTransport(asyncio.Transport):
    """One end; what is written to it is received by the protocol at the other end."""

    def __init__(self) -> None:
        super().__init__()
        self._other: DirectEnd | None = None

    def join(self, other: DirectEnd) -> None:
        """Let this protocol receive from now on."""
        self._other = other

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Let the other end receive this, before it returns."""
        if self._other is not None:
            self._other.data_received(bytes(data))

    def hand_over(self, message: Struct) -> None:
        """Let the other end hear a message, before it returns."""
        if self._other is not None:
            self._other.heard(message)

    def is_closing(self) -> bool:
        """Whether nothing is received any more."""
        return self._other is None

    def get_write_buffer_size(self) -> int:
        """0: nothing waits."""
        return 0

    def close(self) -> None:
        """Let nothing be received any more."""
        self._other = None

    def abort(self) -> None:
        """The same."""
        self.close()


def say(transport: asyncio.Transport, message: Struct) -> None:
    """Send a message to the other end, wherever that is."""
    if isinstance(transport, DirectTransport) and _is_plain(message):
        transport.hand_over(message)
    else:
        transport.write(frame(message))


def _is_plain(message: Struct) -> bool:
    """Whether its text needs no frame, which leaves out what is no character."""
    if isinstance(message, Print):
        return message.text.isascii()
    return not isinstance(message, Rejected | Refused) or message.why.isascii()
