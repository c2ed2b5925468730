"""Machines on one machine: network namespaces on a bridge, whose links can be cut.

A place has its own address, at which its processes listen. Without namespaces, which need root, all
places are this machine and a cut halts the processes of a place: this does not test a running
process without connections.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import click

BRIDGE = "fbrep"  # names of links have at most 15 letters
IP = shutil.which("ip") or ""
NETWORK = "10.213.77"


@dataclass(frozen=True)
class Place:
    """The location of processes."""

    number: int
    is_apart: bool  # in a separate network namespace

    @property
    def host(self) -> str:
        return f"{NETWORK}.{10 + self.number}" if self.is_apart else "127.0.0.1"

    @property
    def name(self) -> str:
        return f"{BRIDGE}{self.number}"

    @property
    def prefix(self) -> list[str]:
        """Return the prefix of a command that runs here."""
        return [IP, "netns", "exec", self.name] if self.is_apart else []

    def cut(self) -> None:
        """Cut the link: nothing arrives, and no side is notified."""
        _ip("link", "set", f"{self.name}h", "down")

    def heal(self) -> None:
        _ip("link", "set", f"{self.name}h", "up")

    def cut_from(self, other: "Place") -> None:
        """Drop the packets to one other place, in one direction."""
        _ip("netns", "exec", self.name, "ip", "route", "add", "blackhole", f"{other.host}/32")

    def heal_from(self, other: "Place") -> None:
        _ip("netns", "exec", self.name, "ip", "route", "del", "blackhole", f"{other.host}/32")


def can_be_apart() -> bool:
    """Return whether network namespaces can be created here."""
    if os.geteuid() != 0 or not IP:
        return False
    tried = subprocess.run([IP, "netns", "add", f"{BRIDGE}try"], capture_output=True, check=False)
    if tried.returncode:
        return False
    _ip("netns", "del", f"{BRIDGE}try")
    return True


@contextmanager
def making_places(count: int) -> Iterator[Sequence[Place]]:
    """Places that reach each other and this machine, removed at the end."""
    if not can_be_apart():
        click.echo("NO NETWORK NAMESPACES: a cut halts the processes of a place instead")
        yield [Place(number, is_apart=False) for number in range(count)]
        return
    places = [Place(number, is_apart=True) for number in range(count)]
    _remove(places)
    _ip("link", "add", BRIDGE, "type", "bridge")
    _ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")
    try:
        for place in places:
            _add(place)
        yield places
    finally:
        _remove(places)


def _add(place: Place) -> None:
    inside, outside = f"{place.name}n", f"{place.name}h"
    _ip("netns", "add", place.name)
    _ip("link", "add", outside, "type", "veth", "peer", "name", inside)
    _ip("link", "set", inside, "netns", place.name)
    _ip("link", "set", outside, "master", BRIDGE)
    _ip("link", "set", outside, "up")
    for command in (
        ("addr", "add", f"{place.host}/24", "dev", inside),
        ("link", "set", inside, "up"),
        ("link", "set", "lo", "up"),
    ):
        _ip("-n", place.name, *command)


def _remove(places: Sequence[Place]) -> None:
    for place in places:
        _ip("netns", "del", place.name, check=False)
    _ip("link", "del", BRIDGE, check=False)


def _ip(*words: str, check: bool = True) -> None:
    done = subprocess.run([IP, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, f"ip {' '.join(words)}: {done.stderr}"
