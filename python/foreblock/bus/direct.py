"""Both ends of the bus in one process: what one says, the other hears at once. No I/O."""

import asyncio


class DirectTransport(asyncio.Transport):
    """One end; what is written to it is received by the protocol at the other end."""

    def __init__(self) -> None:
        super().__init__()
        self._other: asyncio.Protocol | None = None

    def join(self, other: asyncio.Protocol) -> None:
        """Let this protocol receive from now on."""
        self._other = other

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Let the other end receive this, before it returns."""
        if self._other is not None:
            self._other.data_received(bytes(data))

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
