"""Forks that run from a recording, without an endpoint, and those that make one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from foreblock.errors import BadSetting
from foreblock.fork.cache import ForkFile
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.primitives import format_data
from foreblock.settings import ForkPoint, ForkSettings
from foreblock.types import Header

MOST_NAMED: Final = 3  # keys in an error


def check_sources(settings: ForkSettings) -> None:
    """Refuse contradictory settings. Raises `BadSetting`."""
    if settings.state and settings.url:
        raise BadSetting("fork_state", "a recording needs no endpoint, but fork_url is set")
    if settings.state and settings.record:
        raise BadSetting(
            "fork_record", "nothing is fetched with fork_state, so there is nothing to record"
        )
    if settings.record and Path(settings.record).exists():
        raise BadSetting("fork_record", f"{settings.record} exists already")


def recorded_point(file: str) -> ForkPoint:
    """The block of a recording. Raises `BadSetting`."""
    if not Path(file).is_file():
        raise BadSetting("fork_state", f"there is no file {file}")
    point = ForkFile(Path(file)).point()
    if point is None:
        raise BadSetting("fork_state", f"{file} is not a recording of a fork")
    return point


def known_file(settings: ForkSettings, point: ForkPoint, header: Header) -> ForkFile:
    """The file with the known values of a fork, to which fetched ones are added."""
    if settings.state:
        return ForkFile(Path(settings.state))
    if not settings.record:
        return ForkFile.of(settings, point.chain_id, header, proven=point.proven)
    recording = ForkFile(Path(settings.record))
    recorded = recording.point()
    if recorded is None:
        recording.put_point(point)
    return recording if recorded in (None, point) else ForkFile(None)


def named_keys(wanted: StateKeys) -> str:
    """The first of these keys, for an error."""
    shown = list(_names(wanted))
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    return ", ".join(shown[:MOST_NAMED]) + more


def _names(wanted: StateKeys) -> Iterator[str]:
    for address in sorted(wanted.accounts):
        yield f"account {format_data(address)}"
    for address, slots in sorted(wanted.slots.items()):
        for slot in sorted(slots):
            yield f"slot {slot:#x} of {format_data(address)}"
    for code in sorted(wanted.codes):
        yield f"code {format_data(code)}"
    for number in sorted(wanted.blocks):
        yield f"the hash of block {number}"
