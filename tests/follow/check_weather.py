"""Checks 5, 7 and 9: an upstream with false data, one under faults, and endpoints that lack
features.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from follow.check_live import NEED_PROOFS, PATIENT, judge_verdict, judged
from follow.check_options import CheckOptions, Outcome, Scene, scene
from follow.fault_kinds import KINDS, STORMS
from follow.judge import Verdict
from support.servers.dev_processes import Network
from support.servers.waiting import PATIENCE, until

LIE_RATE = 0.01
DAMAGE = tuple(kind for kind in KINDS if kind != "delay")
# A follower with full proofs sends no request affected by this, except when it detects an
# upstream's features. So it is active from the start, and always.
OF_PROBES = {"no-overrides": 1.0}
# These strike rare requests: codes are soon known.
SELDOM = {"flip-code": 0.2}
# At a separate endpoint that accepts only numbers: a bare hash is tried only if hashes in objects
# are rejected, and the latest block is requested at the start and while idle. The first applicable
# kind strikes a request.
BESIDE = {"hash-objects": 1.0, "number-only": 1.0, "heights": 1.0}
BESIDE_ANCHOR = 5
# The others strike occasionally; those that have not by the end strike more often for a while.
RARE_RATE, RARE_SECONDS, RARE_TIMES = 0.5, 5.0, 12
STORM_RATE = 0.1
FAULTS = tuple(kind for kind in STORMS if kind != "delay")
ANSWERS = 100_000
BACK_SECONDS = 2.0  # and one block
LACKS = {
    "heights": "proven", "tip-only-proofs": "proven", "number-only": "proven",
    "no-overrides": "proven", "no-proofs": "trusted",
}  # fmt: skip


def _faults(options: CheckOptions, *words: str) -> str:
    return ",".join([f"delay=1:{options.delay:g}", *words])


def lies(options: CheckOptions) -> Outcome:
    """Check 5: 1 % of responses damaged in every way; nothing wrong is served."""
    outcome = Outcome()
    with scene(options, faults=_words(OF_PROBES | SELDOM)) as found:
        found.proxy.faults(_faults(options, _words(_rates(LIE_RATE, DAMAGE) | SELDOM)))
        verdict = judged(options, found, options.minutes * 60)
        _strike_the_rest(options, found, verdict)
        struck = Counter(found.proxy.tell()["struck"])
        _, said = found.follower.network.probe("/readyz?verbose")
    few = replace(options, anchor=min(options.anchor, BESIDE_ANCHOR))
    with scene(few, faults=_words(BESIDE)) as found:
        verdict.add(judged(few, found, RARE_SECONDS))
        struck += Counter(found.proxy.tell()["struck"])
    outcome.lines += [*verdict.lines(), *verdict.differences[:10], said]
    outcome.must(not verdict.differences, f"{len(verdict.differences)} wrong responses")
    wanted = ANSWERS if options.is_whole else 100
    outcome.must(verdict.answers.total() >= wanted, f"at least {wanted:,} responses are compared")
    outcome.say(f"struck: {dict(struck)}")
    must_have_struck(outcome, struck)
    return outcome


def must_have_struck(outcome: Outcome, struck: Mapping[str, int]) -> None:
    """Require that every kind of damage occurred: an unused kind proves nothing."""
    never = [kind for kind in DAMAGE if not struck.get(kind)]
    outcome.must(not never, f"all {len(DAMAGE)} kinds struck; never: {', '.join(never) or 'none'}")


def _strike_the_rest(options: CheckOptions, found: Scene, verdict: Verdict) -> None:
    """Let the remaining kinds of damage strike; responses are still compared meanwhile."""
    for _ in range(RARE_TIMES):
        struck = found.proxy.tell()["struck"]
        left = [kind for kind in DAMAGE if kind not in struck and kind not in BESIDE]
        if not left:
            return
        found.proxy.faults(_faults(options, _words(_rates(RARE_RATE, left))))
        verdict.add(judged(options, found, RARE_SECONDS))


def _rates(rate: float, kinds: Iterable[str]) -> dict[str, float]:
    return dict.fromkeys(kinds, rate) | OF_PROBES


def _words(rates: Mapping[str, float]) -> str:
    return ",".join(f"{kind}={rate:g}" for kind, rate in rates.items())


def weather(options: CheckOptions) -> Outcome:
    """Check 7: each fault alone at 10 %, then all; the follower recovers soon after."""
    outcome = Outcome()
    phases = {kind: [kind] for kind in FAULTS} | {"all": FAULTS}
    with scene(options) as found:
        for name, kinds in phases.items():
            judge_storm(outcome, options, found, name, kinds, options.minutes * 60 / len(phases))
    return outcome


def judge_storm(
    outcome: Outcome, options: CheckOptions, found: Scene, name: str, kinds: Iterable[str],
    seconds: float,
) -> None:  # fmt: skip
    """Apply these faults for this many seconds: nothing wrong is served, and the follower
    recovers.
    """
    words = (f"{kind}={STORM_RATE}" for kind in kinds)
    found.proxy.faults(_faults(options, *words))
    verdict = judged(options, found, seconds)
    found.proxy.faults(_faults(options))
    came = back(found.upstream.main, found.follower.network)
    outcome.say(f"{name}: {verdict.answers.total():,} responses, back after {came:.1f} s")
    outcome.lines += verdict.differences[:3]
    outcome.must(not verdict.differences, f"{name}: no wrong response")
    allowed = options.block_time + BACK_SECONDS
    is_soon = came <= allowed or options.at_any_speed
    outcome.must(is_soon, f"{name}: pending is back in {allowed:g} s")


def back(chain: Network, follower: Network) -> float:
    """Seconds until the follower has the chain's state at the call."""
    begun = time.monotonic()
    wanted = int(chain.pending()["number"], 16)

    def is_back() -> bool:
        return int(follower.pending()["number"], 16) >= wanted

    until(is_back, "the follower is back")
    return min(time.monotonic() - begun, PATIENCE)


def lacking(options: CheckOptions) -> Outcome:
    """Check 9: endpoints without some features are followed, those without proofs as `trusted`."""
    outcome = Outcome()
    for kind, trust in LACKS.items():
        judge_lacking(outcome, options, [kind], trust, options.minutes * 60 / len(LACKS))
    return outcome


def judge_lacking(
    outcome: Outcome, options: CheckOptions, kinds: Sequence[str], trust: str, seconds: float
) -> None:
    """Follow an endpoint that always lacks these features."""
    name = ", ".join(kinds)
    with scene(
        options, trust=trust, extra=PATIENT, faults=_words(dict.fromkeys(kinds, 1))
    ) as found:
        leave_out = () if {"no-proofs", "tip-only-proofs"}.isdisjoint(kinds) else NEED_PROOFS
        verdict = judged(options, found, seconds, leave_out)
        _, said = found.follower.network.probe("/readyz?verbose")
    outcome.say(f"{name}:")
    judge_verdict(outcome, verdict, 50)
    if trust == "trusted" and not options.stand_in:
        outcome.must("trusted" in said, f"{name}: /readyz reports the mode trusted")
