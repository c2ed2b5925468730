"""Check 4: the upstream requests of a follower, per flashblock and per second.

First a busy chain, with readers that repeat their requests: known state is kept up to date by
execution, and only the chain has a cost. Then a calm chain with the default budget, and readers
with ever new requests: the budget is kept, and blocks continue.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

from follow.check_live import WARM_SECONDS, judged
from follow.check_options import CheckOptions, Outcome, Scene, scene
from follow.counting import OTHER_PRICE, PRICES
from follow.freshness import Freshness, share

TYPICAL_REQUESTS, MOST_REQUESTS = 2, 6  # to the upstream, per flashblock
QUESTIONS = 100  # different requests of each reader
BUDGET = 300  # units a second, the default of `upstream_units`
CALM = 15.0  # transactions a second that this budget is meant for
Json = Any


def economy(options: CheckOptions) -> Outcome:
    """Check 4."""
    outcome = Outcome()
    seconds = options.minutes * 60
    with scene(options) as found:
        judged(options, found, min(WARM_SECONDS, seconds / 3), repeated=QUESTIONS)
        count(outcome, options, found, seconds)
    calm = replace(options, tps=min(CALM, options.tps))
    with scene(calm, units=BUDGET) as found:
        with Freshness(found.upstream.main.feed, found.follower.url) as fresh:
            verdict = judged(calm, found, seconds / 3)
        told = found.proxy.tell()
    outcome.say(f"{verdict.answers.total():,} responses, {verdict.unanswered.total():,} errors")
    busiest = told["busiest"]["units"]
    outcome.must(busiest <= BUDGET, f"{busiest} units in the busiest second of {BUDGET}")
    # It takes some minutes until a chain of this kind is known, at 15 proofs a second.
    times = fresh.lateness(seconds * 2 / 9)
    outcome.must(bool(times) or not options.is_whole, "flashblocks were shown")
    if times:
        outcome.say(f"of {BUDGET} units: median {share(times, 0.5) * 1e3:.0f} ms after the feed")
    return outcome


def count(outcome: Outcome, options: CheckOptions, found: Scene, seconds: float) -> None:
    """The requests, units and bytes of each flashblock in this many seconds."""
    before = found.proxy.tell()
    with Freshness(found.upstream.main.feed, found.follower.url) as fresh:
        verdict = judged(options, found, seconds, repeated=QUESTIONS)
    told = found.proxy.tell(exchanges=before["now"])
    begun = sorted(each[0] for each in told["exchanges"])
    counts = sorted(
        bisect_left(begun, later) - bisect_left(begun, at)
        for (at, _), (later, _) in pairwise(fresh.heard)
    )
    outcome.say(f"{verdict.answers.total():,} answers")
    outcome.must(bool(counts), "flashblocks came")
    if not counts:
        return
    median, most = counts[len(counts) // 2], counts[len(counts) * 99 // 100]
    outcome.must(
        median <= TYPICAL_REQUESTS and most <= MOST_REQUESTS,
        f"requests per flashblock: median {median}, 99 % {most}; 2 and 6 are allowed",
    )
    spent = told["units"] - before["units"], told["sent"] - before["sent"]
    outcome.say(
        f"per flashblock of {len(counts):,}: {len(begun) / len(counts):.2f} requests, "
        f"{spent[0] / len(counts):.1f} units, {spent[1] / len(counts) / 1000:.1f} kB"
    )
    outcome.say(f"by method: {_methods(told['exchanges'])}")
    times = fresh.lateness()
    if times:
        outcome.say(f"shown {share(times, 0.5) * 1e3:.0f} ms after the feed in the median")
    busiest = told["busiest"]["units"]
    outcome.must(busiest <= options.units, f"{busiest} units at most in a second")


def _methods(exchanges: Json) -> str:
    counted = Counter(name for _, _, names in exchanges for name in names)
    return ", ".join(
        f"{name} {count} ({count * PRICES.get(name, OTHER_PRICE)} units)"
        for name, count in counted.most_common()
    )
