"""Check 3: round trips of cold calls, compared with anvil's fork of the same chain in the same run.

Accounts new to a known token receive some, after the follower has seen how the token reads its
balances. Then the chain forks below the anchor, so that the follower restarts with a new base: once
it has fetched the state in use again, the same calls take no round trip either.
"""

import re
from functools import partial
from statistics import median

from follow.busy_world import CLONES, PAIRS, PROXY, ROUTER, balances, number
from follow.check_options import CheckOptions, Outcome, Scene, scene
from follow.follower import CannotRun
from follow.proxied import Proxy, Trips, trips_of, weather_proxy
from follow.upstreams import anvil_upstream, ask
from foreblock.sequencer.predeploys import MULTICALL
from support.payloads.solidity import call_data
from support.servers.waiting import until

NEW_USERS = 6  # callers; the first half shows how a token reads
BELOW = 2  # blocks from the anchor down to the fork point


def _calls(sender: bytes) -> dict[str, tuple[dict[str, str], int]]:
    """Calls with their maximum round trips; in this order each is cold."""
    owner = bytes.fromhex("11" * 20)  # unknown to the load
    balance = call_data("balanceOf(address)", number(owner))
    selling = call_data(
        "sell(address,uint256,address,address,bool)", number(CLONES[0]), 1000, number(PAIRS[0]),
        number(PAIRS[1]), 1,
    )  # fmt: skip
    calls = {
        "token behind a proxy": (PROXY, balance, 3),
        "multicall of 9": (MULTICALL, balances(owner, CLONES[100:109]), 4),
        "multicall of 200": (MULTICALL, balances(owner), 4),
        "swap": (ROUTER, selling, 6),
    }
    return {
        name: (
            {"from": "0x" + sender.hex(), "to": "0x" + to.hex(), "data": "0x" + data.hex()}, most
        )
        for name, (to, data, most) in calls.items()
    }  # fmt: skip


def measure(proxy: Proxy, url: str, sender: bytes) -> dict[str, tuple[Trips, Trips]]:
    """The cost of each call, first and second time."""
    found = {}
    for name, (call, _) in _calls(sender).items():
        first, second = (
            trips_of(proxy, lambda call=call: ask(url, "eth_call", call, "latest"))  # type: ignore[misc]
            for _ in range(2)
        )
        found[name] = first, second
    return found


def round_trips(options: CheckOptions) -> Outcome:
    """The chain stands still while calls are counted: no other requests go to the upstream."""
    outcome = Outcome()
    with scene(options, tps=1) as found:
        sender = found.load.senders[0].address
        with (
            weather_proxy(found.upstream.main.url, f"delay=1:{options.delay:g}") as beside,
            anvil_upstream("--fork-url", beside.url, "--no-storage-caching") as url,
        ):
            theirs = measure(beside, url, sender)
        for name, (first, second) in theirs.items():
            outcome.say(f"anvil: {name}: {first.waves} round trips, then {second.waves}")
        if options.stand_in:
            raise CannotRun(
                "\n".join([*outcome.lines, "a full follower sends no requests to its upstream"])
            )
        judge_ours(outcome, found, sender)
    return outcome


def judge_ours(outcome: Outcome, found: Scene, sender: bytes) -> None:
    """Check the cost of calls to the follower: cold, known, and at another anchor."""
    ours = measure(found.proxy, found.follower.url, sender)
    for name, (_, most) in _calls(sender).items():
        first, second = ours[name]
        told = f"{name}: {first.waves} round trips ({first.items} items), then {second.waves}"
        outcome.must(first.waves <= most and second.waves == 0, f"{told}; {most} and 0 are allowed")
    judge_new_users(outcome, found)
    warm_again(outcome, found, sender)


def judge_new_users(outcome: Outcome, found: Scene) -> None:
    """Check transfers behind a proxy from holders of the token to accounts without it.

    The second of its reads depends on the first, so without known templates each takes two round
    trips.
    """
    took = []
    for at, sender in enumerate(found.load.senders[-NEW_USERS:]):
        data = call_data("transfer(address,uint256)", number(bytes([0xD0 + at]) * 20), 5)
        call = {
            "from": "0x" + sender.address.hex(), "to": "0x" + PROXY.hex(), "data": "0x" + data.hex()
        }  # fmt: skip
        asked = partial(ask, found.follower.url, "eth_call", call, "latest")
        took.append(trips_of(found.proxy, asked).waves)
    told = f"new users of a token: {', '.join(map(str, took))} round trips"
    usual = median(took[NEW_USERS // 2 :])  # a block may send a request meanwhile
    outcome.must(usual <= 1, f"{told}; 1 is allowed in the end")


def warm_again(outcome: Outcome, found: Scene, sender: bytes) -> None:
    """Check that known calls cost nothing soon after the follower has begun again."""
    before, main = _base(found), found.upstream.main
    main.ask("foreblock_reorg", main.latest() - before[0] + BELOW)
    until(lambda: _base(found)[1] > before[1], "the follower has a new base")
    until(lambda: bool(_fetched_again(found)), "the hot set is fetched again")
    outcome.say(f"at another anchor: {_fetched_again(found)}")
    for name, (first, _) in measure(found.proxy, found.follower.url, sender).items():
        told = f"{name}: {first.waves} round trips at another anchor"
        # Blocks that arrive meanwhile send requests too; a cold call takes two or three.
        outcome.must(first.waves <= 1, f"{told}; 1 is allowed")


def _base(found: Scene) -> tuple[int, int]:
    """Number and epoch of the anchor."""
    said = re.search(r"base: block (\d+), epoch (\d+)", _facts(found))
    assert said is not None, "the follower reports its base"
    return int(said[1]), int(said[2])


def _fetched_again(found: Scene) -> str:
    """The follower's report on its hot set, once it is done."""
    said = re.search(r"hot set: .* keys fetched again$", _facts(found), re.MULTILINE)
    return said[0] if said else ""


def _facts(found: Scene) -> str:
    return found.follower.network.probe("/readyz?verbose")[1]
