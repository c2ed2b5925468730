"""Checks 1, 2 and 4: a busy chain behind a slow upstream, followed from an empty store.

Equality: every answer is judged by the chain's own. Freshness: the feed to the first answer.
Economy: what the upstream is asked per flashblock, and in any second.
"""

import re
import threading
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from follow.check_options import CheckOptions, Outcome, Scene, scene
from follow.freshness import Freshness, share
from follow.judge import JudgePlan, Verdict, judge

ANSWERS = 200_000
NEED_PROOFS = ("proof", "account")  # questions that an upstream without proofs cannot help with
WARM_SECONDS = 60.0  # after which freshness and economy are judged
MEDIAN, NEARLY_ALL, FIRST = 0.15, 0.5, 3.0  # seconds
TYPICAL_REQUESTS, MOST_REQUESTS = 2, 6  # of the upstream, per flashblock
BUDGET = 300  # units a second, the default of `upstream_units`


def judged(
    options: CheckOptions, found: Scene, seconds: float, leave_out: Sequence[str] = ()
) -> Verdict:
    """What judges find in so many seconds; some questions may be left out."""
    stop = threading.Event()
    timer = threading.Timer(seconds, stop.set)
    timer.start()
    plan = JudgePlan(
        found.upstream.main.url, found.follower.url, options.seed, options.clients, options.rate,
        anchor=max(options.anchor, base_of(found)), leave_out=leave_out,
    )  # fmt: skip
    try:
        return judge(plan, found.load.senders, stop)
    finally:
        timer.cancel()


def base_of(found: Scene) -> int:
    """The block at which the follower began, the last time."""
    _, said = found.follower.network.probe("/readyz?verbose")
    named = re.search(r"base: block ([0-9]+)", said)
    return int(named[1]) if named else 0


def judge_verdict(outcome: Outcome, verdict: Verdict, answers: int) -> None:
    """No difference, nothing unanswered, and enough of it."""
    outcome.lines += verdict.lines()
    outcome.lines += verdict.differences[:10]
    outcome.must(not verdict.differences, f"{len(verdict.differences)} differences")
    outcome.must(not verdict.unanswered, f"{verdict.unanswered.total()} requests not answered")
    outcome.must(verdict.answers.total() >= answers, f"at least {answers:,} answers are judged")


def equality(options: CheckOptions) -> Outcome:
    """Check 1."""
    outcome = Outcome()
    with scene(options) as found:
        verdict = judged(options, found, options.minutes * 60)
        outcome.say(f"{len(found.load.sent):,} transactions sent")
        outcome.must(not found.load.refused, "the chain took every transaction")
    judge_verdict(outcome, verdict, ANSWERS if options.is_whole else 100)
    return outcome


def freshness(options: CheckOptions) -> Outcome:
    """Check 2."""
    outcome = Outcome()
    with scene(options) as found:
        first = found.follower.first
        is_soon = first <= FIRST or options.at_any_speed
        outcome.must(is_soon, f"the first pending block after {first:.1f} s; {FIRST:g} are allowed")
        with Freshness(found.upstream.main.feed, found.follower.url) as fresh:
            verdict = judged(options, found, options.minutes * 60)
    times = fresh.lateness(min(WARM_SECONDS, options.minutes * 60 / 3))
    judge_verdict(outcome, verdict, 0)
    outcome.must(bool(times), "flashblocks were shown")
    if times:
        median, most = share(times, 0.5), share(times, 0.99)
        told = f"{len(times):,} flashblocks: median {median * 1e3:.0f} ms, 99 % {most * 1e3:.0f} ms"
        is_soon = median <= MEDIAN and most <= NEARLY_ALL
        outcome.must(is_soon or options.at_any_speed, f"{told}; 150 and 500 ms are allowed")
    return outcome


def economy(options: CheckOptions) -> Outcome:
    """Check 4."""
    outcome = Outcome()
    with scene(options, units=BUDGET) as found:
        with Freshness(found.upstream.main.feed, found.follower.url) as fresh:
            judged(options, found, min(WARM_SECONDS, options.minutes * 60 / 3))
            since = found.proxy.now()
            judged(options, found, options.minutes * 60)
        told = found.proxy.tell(exchanges=since)
    begun = sorted(each[0] for each in told["exchanges"])
    heard = [at for at, _ in fresh.heard if at >= since]
    counts = sorted(bisect_left(begun, b) - bisect_left(begun, a) for a, b in pairwise(heard))
    outcome.must(bool(counts), "flashblocks came")
    if counts:
        median, most = counts[len(counts) // 2], counts[len(counts) * 99 // 100]
        outcome.must(
            median <= TYPICAL_REQUESTS and most <= MOST_REQUESTS,
            f"requests per flashblock: median {median}, 99 % {most}; 2 and 6 are allowed",
        )
    busiest = told["busiest"]["units"]
    outcome.must(busiest <= BUDGET, f"{busiest} units in the busiest second of {BUDGET}")
    outcome.say(f"by method: {told['methods']}")
    return outcome
