"""Checks 8 and 10: silence, and reorganisations."""

import time

from follow.batch_client import BatchClient
from follow.check_live import judge_verdict, judged
from follow.check_options import CheckOptions, Outcome, Scene, scene
from follow.check_weather import back
from follow.freshness import share
from support.servers.dev_processes import Network, RpcError
from support.servers.waiting import until

SILENCE = 60.0
FETCH_TIMEOUT = 2.0
NOT_AVAILABLE = -32002
COME_BACK = 5.0


def silence(options: CheckOptions) -> Outcome:
    """Check 8: warm reads go on, cold ones get an error in time, and then it comes back."""
    outcome = Outcome()
    with scene(options) as found:
        judged(options, found, min(options.minutes * 60 / 4, 60))
        warm = _warm_times(found)
        seconds = SILENCE if options.is_whole else 5.0
        found.proxy.silent(seconds)
        quiet = _warm_times(found)
        outcome.must(
            share(quiet, 0.99) <= 2 * share(warm, 0.99) or options.at_any_speed,
            f"warm reads: 99 % {share(quiet, 0.99) * 1e3:.1f} ms, "
            f"{share(warm, 0.99) * 1e3:.1f} ms before",
        )
        with BatchClient(found.follower.url) as client:
            cold = client.ask([("eth_getBalance", ["0x" + "5e" * 20, "latest"])])
        answer = (cold.answers or [{}])[0]
        told = f"a cold read: {answer.get('error') or answer} in {cold.seconds:.1f} s"
        is_refused = (answer.get("error") or {}).get("code") == NOT_AVAILABLE
        in_time = cold.seconds <= FETCH_TIMEOUT + 1
        outcome.must((is_refused and in_time) or options.stand_in, told)
        found.proxy.silent(0)
        came = back(found.upstream.main, found.follower.network)
        outcome.must(came <= COME_BACK or options.at_any_speed, f"back {came:.1f} s after")
        judge_verdict(outcome, judged(options, found, 5), 50)
    return outcome


def _warm_times(found: Scene) -> list[float]:
    """What reads of known state take."""
    address = "0x" + found.load.senders[0].address.hex()
    with BatchClient(found.follower.url) as client:
        times = [client.ask([("eth_getBalance", [address, "latest"])]) for _ in range(300)]
    assert all(each.answers and "result" in each.answers[0] for each in times), "a warm read failed"
    return sorted(each.seconds for each in times)


def reorgs(options: CheckOptions) -> Outcome:
    """Check 10: three blocks above the anchor, then some below it."""
    outcome = Outcome()
    with scene(options) as found:
        main = found.upstream.main
        anchored = main.latest()
        until(lambda: main.latest() >= anchored + 5, "there are five more blocks")
        for name, depth in (("above", 3), ("below", 10)):
            if name == "below":
                depth = min(main.latest() - anchored + depth, main.latest() - 1)  # noqa: PLW2901
            main.ask("foreblock_reorg", depth)
            begun = time.monotonic()
            until(
                lambda: _agree(main, found.follower.network),
                f"both agree after a reorganisation {name} the anchor",
            )
            seconds = time.monotonic() - begun
            is_soon = seconds <= COME_BACK or options.at_any_speed
            outcome.must(is_soon, f"{depth} blocks, {name} the anchor: {seconds:.1f} s")
            judge_verdict(outcome, judged(options, found, 5), 50)
    return outcome


def _agree(chain: Network, follower: Network) -> bool:
    """Whether the follower's latest block is the chain's block of that number, and recent."""
    try:
        mine = follower.ask("eth_getBlockByNumber", "latest", False)
    except RpcError:
        return False  # it has just begun anew
    theirs = chain.ask("eth_getBlockByNumber", mine["number"], False)
    behind = chain.latest() - int(mine["number"], 16)
    return bool(theirs and theirs["hash"] == mine["hash"] and behind <= 2)
