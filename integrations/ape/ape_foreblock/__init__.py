"""The plugin of ape: the provider `foreblock` of Ethereum's local network."""

from collections.abc import Iterator
from typing import Any

from ape import plugins


@plugins.register(plugins.Config)  # type: ignore[untyped-decorator] # ape may not be installed
def config_class() -> Any:
    """The settings, below `foreblock:` in ape's configuration."""
    from ape_foreblock.provider import ForeblockConfig  # noqa: PLC0415, only when it is used

    return ForeblockConfig


@plugins.register(plugins.ProviderPlugin)  # type: ignore[untyped-decorator] # as above
def providers() -> Iterator[tuple[str, str, Any]]:
    from ape_foreblock.provider import ForeblockProvider  # noqa: PLC0415, only when it is used

    yield "ethereum", "local", ForeblockProvider
