"""Checks 5, 7 and 9: an upstream that lies, one in bad weather, and endpoints that lack things."""

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
# This strikes nothing that a follower asks for which proves everything, but for the question what
# an upstream can do. So it is there from the beginning on, and always.
OF_PROBES = {"no-overrides": 1.0}
# This strikes what is seldom asked for: codes are soon known.
SELDOM = {"flip-code": 0.2}
# At an endpoint of its own, which takes numbers only: a bare hash is tried only where hashes in
# objects are refused, and the latest block is looked for at the start, and while nothing is behind.
# The first kind that can strike a request does.
BESIDE = {"hash-objects": 1.0, "number-only": 1.0, "heights": 1.0}
BESIDE_ANCHOR = 5
# The others strike now and then; those that have not by the end do so more often for a while.
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
    """Check 5: 1 % of answers damaged in every way; nothing wrong is served."""
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
    outcome.must(not verdict.differences, f"{len(verdict.differences)} wrong answers")
    wanted = ANSWERS if options.is_whole else 100
    outcome.must(verdict.answers.total() >= wanted, f"at least {wanted:,} answers are judged")
    outcome.say(f"struck: {dict(struck)}")
    must_have_struck(outcome, struck)
    return outcome


def must_have_struck(outcome: Outcome, struck: Mapping[str, int]) -> None:
    """Every kind of damage was done: of one that was not, nothing is known."""
    never = [kind for kind in DAMAGE if not struck.get(kind)]
    outcome.must(not never, f"all {len(DAMAGE)} kinds struck; never: {', '.join(never) or 'none'}")


def _strike_the_rest(options: CheckOptions, found: Scene, verdict: Verdict) -> None:
    """Let the kinds that have not struck yet do so; what is answered meanwhile is judged too."""
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
    """Check 7: each fault alone at 10 %, then all; it is well again soon after."""
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
    """Let these faults strike for so many seconds: nothing wrong is served, and it ends."""
    words = (f"{kind}={STORM_RATE}" for kind in kinds)
    found.proxy.faults(_faults(options, *words))
    verdict = judged(options, found, seconds)
    found.proxy.faults(_faults(options))
    came = back(found.upstream.main, found.follower.network)
    outcome.say(f"{name}: {verdict.answers.total():,} answers, back after {came:.1f} s")
    outcome.lines += verdict.differences[:3]
    outcome.must(not verdict.differences, f"{name}: no wrong answer")
    allowed = options.block_time + BACK_SECONDS
    is_soon = came <= allowed or options.at_any_speed
    outcome.must(is_soon, f"{name}: pending is back in {allowed:g} s")


def back(chain: Network, follower: Network) -> float:
    """Seconds until the follower shows what the chain showed when this began."""
    begun = time.monotonic()
    wanted = int(chain.pending()["number"], 16)

    def is_back() -> bool:
        return int(follower.pending()["number"], 16) >= wanted

    until(is_back, "the follower is back")
    return min(time.monotonic() - begun, PATIENCE)


def lacking(options: CheckOptions) -> Outcome:
    """Check 9: endpoints that lack something are followed, without proofs as `trusted`."""
    outcome = Outcome()
    for kind, trust in LACKS.items():
        judge_lacking(outcome, options, [kind], trust, options.minutes * 60 / len(LACKS))
    return outcome


def judge_lacking(
    outcome: Outcome, options: CheckOptions, kinds: Sequence[str], trust: str, seconds: float
) -> None:
    """Follow an endpoint that always lacks all of this."""
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
        outcome.must("trusted" in said, f"{name}: /readyz says that it is trusted")
