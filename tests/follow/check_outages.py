"""Checks 8 and 10: silence, and reorganisations."""

import time
from collections import Counter
from collections.abc import Sequence

from follow.batch_client import Answered, BatchClient
from follow.check_live import base_of, judge_after, judged
from follow.check_options import CheckOptions, Outcome, Scene, scene
from follow.check_weather import back
from follow.freshness import share
from support.servers.dev_processes import Network, RpcError
from support.servers.waiting import until

SILENCE = 60.0
FETCH_TIMEOUT = 2.0
NOT_AVAILABLE = -32002
COME_BACK = 5.0
NO_END = 3600.0  # until the next command to the proxy
COLD = 0x5E << 152  # and following: unused accounts
ABOVE, BELOW = 3, 10  # depths of reorganisations


def silence(options: CheckOptions) -> Outcome:
    """Check 8: warm reads continue, cold ones get an error in time, and the follower recovers."""
    outcome = Outcome()
    with scene(options) as found:
        judged(options, found, min(options.minutes * 60 / 4, 60))
        judge_silence(outcome, options, found, SILENCE if options.is_whole else 5.0)
    return outcome


def judge_silence(outcome: Outcome, options: CheckOptions, found: Scene, seconds: float) -> None:
    """Let the upstream be silent for this many seconds, and until pending has expired."""
    usual, warm, cold = _warm_times(found), list[float](), list[Answered]()
    found.proxy.silent(NO_END)
    begun = time.monotonic()
    while not cold or time.monotonic() < begun + seconds:
        warm += _warm_times(found)
        cold.append(_cold_read(found, len(cold)))
    until(lambda: _has_ended(found) or options.stand_in, "pending has ended")
    lasted = time.monotonic() - begun
    found.proxy.silent(0)
    came = back(found.upstream.main, found.follower.network)
    outcome.say(f"silent for {lasted:.0f} s, {len(warm):,} warm reads and {len(cold)} cold ones")
    most, before = share(sorted(warm), 0.99), share(usual, 0.99)
    is_soon = most <= 2 * before or options.at_any_speed
    outcome.must(is_soon, f"99 % of warm reads {most * 1e3:.1f} ms, {before * 1e3:.1f} ms before")
    _judge_cold(outcome, options, cold)
    outcome.must(came <= COME_BACK or options.at_any_speed, f"back {came:.1f} s after")
    judge_after(outcome, options, found)


def _cold_read(found: Scene, number: int) -> Answered:
    """Request an account that was never requested before."""
    address = "0x" + (COLD + number).to_bytes(20).hex()
    with BatchClient(found.follower.url) as client:
        return client.ask([("eth_getBalance", [address, "latest"])])


def _has_ended(found: Scene) -> bool:
    """Return whether pending is the latest block."""
    with BatchClient(found.follower.url) as client:
        pending = client.ask([("eth_chainId", [])]).pending
    return pending is not None and pending.flashblock is None


def _judge_cold(outcome: Outcome, options: CheckOptions, cold: Sequence[Answered]) -> None:
    """Check that each got an error for unavailable state within the time of a fetch."""
    codes = Counter(
        (each.answers[0].get("error") or {}).get("code") if each.answers else each.why
        for each in cold
    )
    outcome.must(set(codes) == {NOT_AVAILABLE} or options.stand_in, f"cold reads: {dict(codes)}")
    most = max(each.seconds for each in cold)
    is_soon = most <= FETCH_TIMEOUT + 1 or options.at_any_speed
    outcome.must(is_soon, f"errors after {most:.1f} s at most")


def _warm_times(found: Scene) -> list[float]:
    """The times of reads of known state."""
    address = "0x" + found.load.senders[0].address.hex()
    with BatchClient(found.follower.url) as client:
        times = [client.ask([("eth_getBalance", [address, "latest"])]) for _ in range(300)]
    assert all(each.answers and "result" in each.answers[0] for each in times), "a warm read failed"
    return sorted(each.seconds for each in times)


def reorgs(options: CheckOptions) -> Outcome:
    """Check 10: three blocks above the anchor, then some below it."""
    outcome = Outcome()
    with scene(options) as found:
        for depth in (ABOVE, -BELOW):
            judge_reorg(outcome, options, found, depth)
    return outcome


def judge_reorg(outcome: Outcome, options: CheckOptions, found: Scene, depth: int) -> None:
    """Drop this many blocks above the anchor, or if negative this many below it."""
    main, anchored, name = found.upstream.main, base_of(found), "above" if depth > 0 else "below"
    until(lambda: main.latest() > anchored + abs(depth), f"there are {abs(depth)} more blocks")
    if depth < 0:
        depth = min(main.latest() - anchored - depth, main.latest() - 1)
    main.ask("foreblock_reorg", depth)
    begun = time.monotonic()
    until(
        lambda: _agree(main, found.follower.network),
        f"both agree after a reorganisation {name} the anchor",
    )
    seconds = time.monotonic() - begun
    is_soon = seconds <= COME_BACK or options.at_any_speed
    outcome.must(is_soon, f"{depth} blocks, {name} the anchor: {seconds:.1f} s")
    judge_after(outcome, options, found)


def _agree(chain: Network, follower: Network) -> bool:
    """Return whether the follower's latest block is recent and equals the chain's."""
    try:
        mine = follower.ask("eth_getBlockByNumber", "latest", False)
    except RpcError:
        return False  # it has just restarted
    theirs = chain.ask("eth_getBlockByNumber", mine["number"], False)
    behind = chain.latest() - int(mine["number"], 16)
    return bool(theirs and theirs["hash"] == mine["hash"] and behind <= 2)
