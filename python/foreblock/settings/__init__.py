"""Every setting, in frozen dataclasses: one for each command, composed of smaller ones.

A setting has one name everywhere: `body_limit` in `foreblock.toml` is `--body-limit` and
`FOREBLOCK_BODY_LIMIT`. Values come from `foreblock.settings.loading`; networks are made of them
in `foreblock.settings.networks`.
"""

from foreblock.settings.chain_settings import (
    LARGEST_BALANCE,
    LARGEST_NUMBER,
    MOST_LOAD,
    ChainSettings,
    DevSettings,
    EverySetting,
    FollowingSettings,
    FollowSettings,
    KeepSettings,
    ReplicationSettings,
    ServeSettings,
    SourceSettings,
)
from foreblock.settings.fork_settings import ForkPoint, ForkSettings, ReplayedBlock
from foreblock.settings.service_settings import (
    SECTIONS,
    Access,
    Dialect,
    FeedLimits,
    ServerLimits,
    Settings,
    StoreResources,
    WebSocketLimits,
)

__all__ = [
    "LARGEST_BALANCE", "LARGEST_NUMBER", "MOST_LOAD", "SECTIONS", "Access", "ChainSettings",
    "DevSettings", "Dialect", "EverySetting", "FeedLimits", "FollowSettings", "FollowingSettings",
    "ForkPoint", "ForkSettings", "KeepSettings", "ReplayedBlock", "ReplicationSettings",
    "ServeSettings", "ServerLimits", "Settings", "SourceSettings", "StoreResources",
    "WebSocketLimits",
]  # fmt: skip
