"""The log of a network, from its settings: checked here, before anything starts. No I/O.

A log needs libraries that not every installation has; whether they are there is asked without
loading them.
"""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final, Protocol
from urllib.parse import urlsplit

from foreblock.errors import BadSetting
from foreblock.secret_urls import redact_urls
from foreblock.settings.networks import LogOptions

LIBRARIES: Final = ("nats", "zstandard")  # modules that the log imports
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")  # as subjects of NATS may have
SCHEMES: Final = ("nats", "tls")


class LogSettings(Protocol):
    """The settings of a log, by their names."""

    @property
    def log(self) -> tuple[str, ...]: ...
    @property
    def log_name(self) -> str: ...
    @property
    def log_replicas(self) -> int: ...
    @property
    def log_credentials(self) -> str: ...
    @property
    def log_ca(self) -> str: ...
    @property
    def takeover(self) -> float: ...
    @property
    def snapshot_listen(self) -> str: ...
    @property
    def snapshot_from(self) -> tuple[str, ...]: ...


def log_options(network: str, given: LogSettings) -> LogOptions | None:
    """The log of a network; none without servers. Raises `BadSetting`."""
    if not given.log:
        _refuse_useless(given)
        return None
    check_servers(given.log)
    if not NAME.fullmatch(given.log_name or network):
        raise BadSetting("log_name", "expected up to 64 letters, digits, hyphens, underscores")
    check_libraries()
    return LogOptions(
        servers=list(given.log),
        name=given.log_name or network,
        replicas=given.log_replicas,
        credentials=given.log_credentials,
        ca=given.log_ca,
        takeover=given.takeover,
        snapshot_listen=given.snapshot_listen,
        snapshot_from=list(given.snapshot_from),
    )


def _refuse_useless(given: LogSettings) -> None:
    for name in ("log_name", "log_credentials", "log_ca", "snapshot_listen", "snapshot_from"):
        if getattr(given, name):
            raise BadSetting(name, "it needs log: the NATS servers of the log")


def check_servers(servers: Sequence[str]) -> None:
    """Raise `BadSetting` for what is no address of a NATS server."""
    for server in servers:
        if not _is_address(server):
            expected = "nats://HOST:PORT or tls://HOST:PORT"
            raise BadSetting("log", f"expected {expected}, found {redact_urls(server)!r}")


def _is_address(server: str) -> bool:
    try:
        parts = urlsplit(server)
        return parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port
        return False


def check_libraries() -> None:
    """Raise `BadSetting` where a log cannot be had, because a library is not installed."""
    missing = [name for name in LIBRARIES if not _is_there(name)]
    if missing:
        words = " and ".join(missing)
        raise BadSetting("log", f"{words} is not installed: pip install 'foreblock[replicas]'")


def _is_there(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ValueError:  # it was tried before, and is not there
        return False
