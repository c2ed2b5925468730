"""Which process listens at an address, from /proc.

The kernel lists listening sockets by inode, and each process its open sockets. Those of other
users cannot be read; then there is no name.
"""

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_LISTENING: Final = "0A"  # the state of a socket, from include/net/tcp_states.h
_WORD: Final = 4  # addresses are printed by words of this many bytes, in the machine's order
_TABLES: Final = ("tcp", "tcp6")


def owner_of(host: str, port: int) -> str:
    """Name and id of the process that listens there, such as `foreblock dev (pid 7)`, or empty."""
    with suppress(OSError, ValueError):
        sockets = {f"socket:[{inode}]" for inode in _inodes(_packed(host), port)}
        owners = {pid for pid in _processes() if sockets & _open_files(pid)}
        # A supervisor shares its sockets with the processes that it starts.
        for pid in sorted(owners):
            if _parent(pid) not in owners:
                return f"{_name(pid)} (pid {pid})"
    return ""


def _packed(host: str) -> bytes:
    family, _, _, _, where = socket.getaddrinfo(host, None)[0]
    return socket.inet_pton(family, str(where[0]))


def _inodes(wanted: bytes, port: int) -> Iterator[str]:
    """The listening sockets at an address, or at every address of the machine."""
    for table in _TABLES:
        for line in (_PROC / "net" / table).read_text("ascii").splitlines()[1:]:
            _, local, _, state, _, _, _, _, _, inode, *_ = line.split()
            address, _, at = local.partition(":")
            if state != _LISTENING or int(at, 16) != port:
                continue
            words = bytes.fromhex(address)
            packed = b"".join(words[at : at + _WORD][::-1] for at in range(0, len(words), _WORD))
            if packed == wanted or not any(packed) or not any(wanted):
                yield inode


def _processes() -> Iterator[int]:
    return (int(each.name) for each in _PROC.iterdir() if each.name.isdecimal())


def _open_files(pid: int) -> set[str]:
    found: set[str] = set()
    with suppress(OSError):  # it has ended, or is another user's
        for each in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                found.add(str(each.readlink()))
    return found


def _parent(pid: int) -> int:
    # The name, in parentheses, may contain spaces.
    return int((_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])


def _name(pid: int) -> str:
    return program((_PROC / str(pid) / "cmdline").read_text(errors="replace").split("\0"))


def program(words: list[str]) -> str:
    """The name of a program, and of its command; other arguments may be secret."""
    if Path(words[0]).name.startswith("python") and words[1:2] != ["-c"]:
        words = words[2:] if words[1:2] == ["-m"] else words[1:]
    name, verb = Path(words[0]).name, "".join(words[1:2])
    return f"{name} {verb}" if verb.isalpha() else name
