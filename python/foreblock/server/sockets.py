"""Listening sockets: one for each worker, on one address.

SO_REUSEPORT lets the kernel distribute connections over them. It would also let a second
instance join unnoticed and take half of the connections, so the address is bound without it
first. Processes of an instance that was killed give their address back a moment later, so one
that is in use is tried again for a while.
"""

import ctypes
import errno
import ipaddress
import socket
import struct
import time
from contextlib import suppress
from typing import Final

from foreblock.errors import AddressInUse, AddressUnusable
from foreblock.server.port_owner import owner_of

BACKLOG: Final = 4096  # the kernel lowers it to net.core.somaxconn
PATIENCE: Final = 2.0  # seconds for an address in use to become free
_RETRY: Final = 0.05
_SO_ATTACH_FILTER: Final = 26  # asm-generic/socket.h; the socket module has no name for it


def parse_address(text: str) -> tuple[str, int]:
    """Parse `HOST:PORT` or `[IPV6]:PORT`. Raises `AddressUnusable`."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not host or (":" in host and not bracketed):
        raise AddressUnusable(text, "expected HOST:PORT")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise AddressUnusable(text, "the port is not a number up to 65535")
    return host.removeprefix("[").removesuffix("]"), int(port)


def listen(address: str, count: int, patience: float = PATIENCE) -> list[socket.socket]:
    """Open `count` sockets that listen on one address; port 0 picks a free port.

    Waits for up to `patience` seconds for an address in use. Raises `AddressInUse` and
    `AddressUnusable`.
    """
    host, port = parse_address(address)
    opened: list[socket.socket] = []
    try:
        family, _, _, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        if port:
            _wait_until_free(family, where, patience)
        for _ in range(count):
            opened.append(_bound(family, where, shared=True))
            where = opened[0].getsockname()
        for sock in opened:
            sock.listen(BACKLOG)
    except OSError as failure:
        for sock in opened:
            sock.close()
        if failure.errno == errno.EADDRINUSE:
            raise AddressInUse(address, owner_of(host, port)) from None
        raise AddressUnusable(address, failure.strerror or str(failure)) from None
    return opened


def name(sock: socket.socket) -> str:
    """The address of a socket as `HOST:PORT`."""
    host, port, *_ = sock.getsockname()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(sock: socket.socket) -> bool:
    """Return whether only programs of this machine reach a listening socket."""
    return is_loopback_host(sock.getsockname()[0])


def is_loopback_host(host: str) -> bool:
    """Return whether a host is a loopback address or localhost."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


# BPF from the TCP header on: drop packets with the SYN flag.
_DROP_BEGINNINGS: Final = (
    (0x30, 0, 0, 13),  # load byte 13
    (0x45, 0, 1, 0x02),  # jump if it has this bit
    (0x06, 0, 0, 0),  # keep nothing
    (0x06, 0, 0, 0xFFFF_FFFF),  # keep all
)


def refuse_new(sock: socket.socket) -> None:
    """Stop new connections from reaching a listening socket; those in its queue stay.

    Closing a listening socket resets the connections in its queue, and one more can always
    arrive between the last accept and the close. A filter that drops SYN packets closes that
    gap: a client is either in the queue, and is served, or retries and finds no listener. Other
    packets pass, since a client whose last handshake packet is dropped believes that it is
    connected. Where filters are not allowed, the short gap remains.
    """
    steps = b"".join(struct.pack("HBBI", *step) for step in _DROP_BEGINNINGS)
    filters = ctypes.create_string_buffer(steps)
    program = struct.pack("HL", len(_DROP_BEGINNINGS), ctypes.addressof(filters))
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def _wait_until_free(family: int, where: object, patience: float) -> None:
    until = time.monotonic() + patience
    while True:
        try:
            _bound(family, where, shared=False).close()
        except OSError as failure:
            if failure.errno != errno.EADDRINUSE or time.monotonic() >= until:
                raise
            time.sleep(_RETRY)
        else:
            return


def _bound(family: int, where: object, *, shared: bool) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Connections of a previous instance in TIME_WAIT do not matter.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.settimeout(0)
        sock.bind(where)  # type: ignore[arg-type] # it comes from getaddrinfo as it is
    except OSError:
        sock.close()
        raise
    return sock
