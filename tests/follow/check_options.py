"""The options and the outcome of a check."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from follow.busy_load import BusyLoad, loaded
from follow.follower import Follower, FollowerPlan, follower
from follow.proxied import Proxy, weather_proxy
from support.servers.dev_processes import Dev
from support.servers.waiting import until


@dataclass(frozen=True)
class CheckOptions:
    """Duration and load."""

    minutes: float = 10
    tps: float = 200
    clients: int = 4
    rate: float = 20  # batches a second of each client
    delay: float = 0.05  # seconds between follower and upstream
    seed: int = 0
    anchor: int = 50  # block of the dev chain
    block_time: int = 2  # seconds, as dev chains have it
    units: int = 200_000  # maximum per second at the upstream
    stand_in: bool = False
    at_any_speed: bool = False  # times are not checked
    before: Path | None = None  # another checkout's command, for comparison

    @property
    def is_whole(self) -> bool:
        """Return whether the specification's numbers apply."""
        return self.minutes >= 10


@dataclass
class Outcome:
    """The result of a check."""

    lines: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Record a measurement."""
        self.lines.append(text)

    def must(self, holds: bool, text: str) -> None:
        """Record a requirement."""
        self.lines.append(f"{'holds' if holds else 'FAILS'}: {text}")
        if not holds:
            self.complaints.append(text)


@dataclass(frozen=True)
class Scene:
    """A busy chain, the proxy in front of it, and its follower."""

    upstream: Dev
    load: BusyLoad
    proxy: Proxy
    follower: Follower
    plan: FollowerPlan


@contextmanager
def scene(
    options: CheckOptions, *, trust: str = "proven", tps: float | None = None,
    extra: tuple[str, ...] = (), faults: str = "", units: int | None = None,
    lies: Sequence[tuple[str, str, str]] = (),
) -> Iterator[Scene]:  # fmt: skip
    """The whole setup, with the follower begun at the anchor from an empty store.

    `lies` apply from the start.
    """
    with (
        tempfile.TemporaryDirectory(prefix="foreblock-follow-") as name,
        loaded(
            Path(name), f"--block-time={options.block_time}", f"--seed={options.seed}", count=20,
            seed=options.seed, tps=options.tps if tps is None else tps,
        ) as (dev, load),
        weather_proxy(
            dev.main.url, f"delay=1:{options.delay:g},{faults}", seed=options.seed
        ) as proxy,
    ):  # fmt: skip
        if lies:
            proxy.lie(*lies)
        until(lambda: dev.main.latest() >= options.anchor, f"block {options.anchor} is there")
        plan = FollowerPlan(
            chain=Path(name) / "dev" / "main" / "genesis.json", upstream=proxy.url,
            feed=dev.main.feed, data=Path(name) / "followed", trust=trust,
            options=(f"--upstream-units={units or options.units}", *extra),
        )  # fmt: skip
        with follower(plan, stand_in=options.stand_in) as found:
            yield Scene(dev, load, proxy, found, plan)


@contextmanager
def another(found: Scene, *, trust: str) -> Iterator[Scene]:
    """Another follower of the same chain through the same proxy, begun from an empty store."""
    plan = replace(found.plan, trust=trust, data=found.plan.data.with_name(trust))
    with follower(plan) as other:
        yield replace(found, plan=plan, follower=other)
