"""Checks 1 and 2: a busy chain behind a slow upstream, followed from an empty store.

Equality: every response is compared with the chain's own. Freshness: from the feed to the first
response.
"""

import re
import threading
from collections.abc import Sequence

from follow.check_options import CheckOptions, Outcome, Scene, scene
from follow.freshness import Freshness, share
from follow.judge import JudgePlan, Verdict, judge

ANSWERS = 200_000
NEED_PROOFS = ("proof", "account")  # requests that fail on an upstream without proofs
AFTER_SECONDS, AFTER_ANSWERS = 5.0, 50
WARM_SECONDS = 60.0  # before freshness and economy are measured
MEDIAN, NEARLY_ALL, FIRST = 0.15, 0.5, 3.0  # seconds
PATIENT = ("--fetch-timeout=10",)  # responses must be equal, not fast


def judged(
    options: CheckOptions,
    found: Scene,
    seconds: float,
    leave_out: Sequence[str] = (),
    repeated: int | None = None,
) -> Verdict:
    """The verdict of judges after this many seconds: each repeats a set of requests, or sends ever
    new ones.
    """
    stop = threading.Event()
    timer = threading.Timer(seconds, stop.set)
    timer.start()
    plan = JudgePlan(
        found.upstream.main.url, found.follower.url, options.seed, options.clients, options.rate,
        anchor=max(options.anchor, base_of(found)), leave_out=leave_out, repeated=repeated,
    )  # fmt: skip
    try:
        return judge(plan, found.load.senders, stop)
    finally:
        timer.cancel()


def base_of(found: Scene) -> int:
    """The latest anchor block of the follower."""
    _, said = found.follower.network.probe("/readyz?verbose")
    named = re.search(r"base: block ([0-9]+)", said)
    return int(named[1]) if named else 0


def judge_verdict(outcome: Outcome, verdict: Verdict, answers: int) -> None:
    """Check for no difference, no missing response, and enough of both."""
    outcome.lines += verdict.lines()
    outcome.lines += verdict.differences[:10]
    outcome.must(not verdict.differences, f"{len(verdict.differences)} differences")
    outcome.must(not verdict.unanswered, f"{verdict.unanswered.total()} requests not answered")
    outcome.must(verdict.answers.total() >= answers, f"at least {answers:,} responses are compared")


def judge_after(
    outcome: Outcome, options: CheckOptions, found: Scene, leave_out: Sequence[str] = ()
) -> None:
    """Check that responses after an event are equal."""
    seconds, answers = (AFTER_SECONDS, AFTER_ANSWERS) if options.is_whole else (1.0, 1)
    judge_verdict(outcome, judged(options, found, seconds, leave_out), answers)


def equality(options: CheckOptions) -> Outcome:
    """Check 1."""
    outcome = Outcome()
    with scene(options, extra=PATIENT) as found:
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
