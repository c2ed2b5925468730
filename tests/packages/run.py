"""Build the packages into dist, and try the one for this machine.

`make wheel` runs it. A package that cannot be built here is reported in one line, with the reason;
the wheel for this machine must build, be complete and run.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from packages.building import (
    PLATFORMS,
    NotBuilt,
    Platform,
    Workshop,
    build_sdist,
    build_wheel,
    install_zig,
    runs_here,
    train,
    unpack,
)
from packages.contents import faults_of_sdist, faults_of_wheel, version_of
from packages.trying import try_package

CHECKOUT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=CHECKOUT / "dist")
    parser.add_argument("--only", default="", help="a part of the tags, such as x86_64")
    parser.add_argument("--try", dest="given", type=Path, help="build nothing and try this package")
    options = parser.parse_args()
    if options.given:
        try_and_say(options.given)
        return
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", CHECKOUT / "target")).resolve()
    shop, faults = begin(out, target)
    wheels = {}
    wanted = [each for each in PLATFORMS if options.only in each.tag]
    if wanted:
        shop = train_and_say(shop)
    for platform in wanted:
        if built := build_and_say(platform, shop):
            wheels[platform] = built
            faults += faults_of_wheel(built, CHECKOUT)
    for fault in faults:
        say("wrong", fault)
    here = next((each for each in wanted if runs_here(each.tag)), None)
    if faults or (here and here not in wheels):
        sys.exit("there is no complete wheel for this machine" if here else 1)
    if here:
        try_and_say(wheels[here])
    else:
        say("NOT TRIED", "no wheel for this machine")


def begin(out: Path, target: Path) -> tuple[Workshop, list[str]]:
    """The source distribution, unpacked for the build, and its faults."""
    sdist = build_sdist(CHECKOUT, out)
    say("built", f"{sdist.name}, {sdist.stat().st_size / 2**20:.1f} MiB; wheels are built from it")
    folder = target / "packages"
    source = unpack(sdist, folder / "source")
    zig = install_zig(folder / "zig")
    return Workshop(source, out, target, folder, zig), faults_of_sdist(sdist, CHECKOUT)


def train_and_say(shop: Workshop) -> Workshop:
    begun = time.monotonic()
    try:
        shop = shop._replace(profile=train(shop))
    except NotBuilt as reason:
        say("UNTRAINED", f"wheels are built without a profile of the engine: {reason}")
    else:
        say("trained", f"the engine, by `foreblock bench rpc`, in {time.monotonic() - begun:.0f} s")
    return shop


def build_and_say(platform: Platform, shop: Workshop) -> Path | None:
    begun = time.monotonic()
    try:
        wheel = build_wheel(platform, shop)
    except NotBuilt as reason:
        say("NOT BUILT", f"the wheel for {platform.tag}: {reason}")
        return None
    size, seconds = wheel.stat().st_size / 2**20, time.monotonic() - begun
    say("built", f"{wheel.name}, {size:.1f} MiB in {seconds:.0f} s")
    return wheel


def try_and_say(package: Path) -> None:
    times = try_package(package, version_of(CHECKOUT))
    say("tried", f"{package.name}: installed into an empty environment in {times.install:.1f} s;")
    say("", f"`foreblock dev` answered at pending {times.first_answer:.2f} s after its start,")
    say("", f"`uvx --from {package.name} foreblock dev` {times.by_uvx:.1f} s after it was typed")


def say(what: str, text: str) -> None:
    print(f"{what:<9}  {text}", flush=True)  # noqa: T201, what it is for


if __name__ == "__main__":
    main()
