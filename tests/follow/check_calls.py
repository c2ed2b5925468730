"""Check 3: round trips of cold calls, beside anvil's fork of the same chain in the same run.

Users that are new to a token that is known take one, once it was seen how it reads its balances.
Then the chain parts below the anchor, so that the follower begins anew and all it knew is out of
reach: once it has fetched again what was in use, the same calls take no round trip either.
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

NEW_USERS = 6  # that call, of which the first half shows how a token reads
BELOW = 2  # blocks from the anchor down to where the chain parts


def _calls(sender: bytes) -> dict[str, tuple[dict[str, str], int]]:
    """Calls with the round trips that they may take; in this order each is cold."""
    owner = bytes.fromhex("11" * 20)  # nobody that the load knows
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
    """What each call costs the first time and the second."""
    found = {}
    for name, (call, _) in _calls(sender).items():
        first, second = (
            trips_of(proxy, lambda call=call: ask(url, "eth_call", call, "latest"))  # type: ignore[misc]
            for _ in range(2)
        )
        found[name] = first, second
    return found


def round_trips(options: CheckOptions) -> Outcome:
    """The chain stands still while calls are counted: nothing else asks the upstream."""
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
                "\n".join([*outcome.lines, "a full follower asks its upstream nothing"])
            )
        judge_ours(outcome, found, sender)
    return outcome


def judge_ours(outcome: Outcome, found: Scene, sender: bytes) -> None:
    """What calls cost the follower: cold, known, and at another anchor."""
    ours = measure(found.proxy, found.follower.url, sender)
    for name, (_, most) in _calls(sender).items():
        first, second = ours[name]
        told = f"{name}: {first.waves} round trips ({first.items} items), then {second.waves}"
        outcome.must(first.waves <= most and second.waves == 0, f"{told}; {most} and 0 are allowed")
    judge_new_users(outcome, found)
    warm_again(outcome, found, sender)


def judge_new_users(outcome: Outcome, found: Scene) -> None:
    """Transfers behind a proxy by people who have some of the token, to others who have none.

    What the second of its reads is depends on the first, so without knowing how the token reads
    each takes two round trips.
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
    usual = median(took[NEW_USERS // 2 :])  # a block may ask for something meanwhile
    outcome.must(usual <= 1, f"{told}; 1 is allowed in the end")


def warm_again(outcome: Outcome, found: Scene, sender: bytes) -> None:
    """Calls that were known cost nothing soon after the follower has begun anew."""
    before, main = _base(found), found.upstream.main
    main.ask("foreblock_reorg", main.latest() - before[0] + BELOW)
    until(lambda: _base(found)[1] > before[1], "the follower has begun anew")
    until(lambda: bool(_fetched_again(found)), "what was in use is fetched again")
    outcome.say(f"at another anchor: {_fetched_again(found)}")
    for name, (first, _) in measure(found.proxy, found.follower.url, sender).items():
        told = f"{name}: {first.waves} round trips at another anchor"
        # Blocks that come meanwhile ask for something too; a cold call takes two or three.
        outcome.must(first.waves <= 1, f"{told}; 1 is allowed")


def _base(found: Scene) -> tuple[int, int]:
    """Number and epoch of the anchor."""
    said = re.search(r"base: block (\d+), epoch (\d+)", _facts(found))
    assert said is not None, "a follower says where it began"
    return int(said[1]), int(said[2])


def _fetched_again(found: Scene) -> str:
    """What the follower says of its hot set, once it is done with it."""
    said = re.search(r"hot set: .* keys known again$", _facts(found), re.MULTILINE)
    return said[0] if said else ""


def _facts(found: Scene) -> str:
    return found.follower.network.probe("/readyz?verbose")[1]
