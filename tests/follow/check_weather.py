"""Checks 5, 7 and 9: an upstream that lies, one in bad weather, and endpoints that lack things."""

import time

from follow.check_live import NEED_PROOFS, PATIENT, judge_verdict, judged
from follow.check_options import BLOCK_TIME, CheckOptions, Outcome, scene
from follow.fault_kinds import KINDS, STORMS
from support.servers.dev_processes import Network
from support.servers.waiting import PATIENCE, until

LIE_RATE = 0.01
DAMAGE = tuple(kind for kind in KINDS if kind != "delay")
STORM_RATE = 0.1
ANSWERS = 100_000
BACK_SECONDS = BLOCK_TIME + 2.0
LACKS = {
    "heights": "proven", "tip-only-proofs": "proven", "number-only": "proven",
    "no-overrides": "proven", "no-proofs": "trusted",
}  # fmt: skip


def _faults(options: CheckOptions, *words: str) -> str:
    return ",".join([f"delay=1:{options.delay:g}", *words])


def lies(options: CheckOptions) -> Outcome:
    """Check 5: 1 % of answers damaged in every way; nothing wrong is served."""
    outcome = Outcome()
    with scene(options) as found:
        found.proxy.faults(_faults(options, *(f"{kind}={LIE_RATE}" for kind in DAMAGE)))
        verdict = judged(options, found, options.minutes * 60)
        struck = found.proxy.tell()["struck"]
        _, said = found.follower.network.probe("/readyz?verbose")
    outcome.lines += [*verdict.lines(), *verdict.differences[:10], said]
    outcome.must(not verdict.differences, f"{len(verdict.differences)} wrong answers")
    wanted = ANSWERS if options.is_whole else 100
    outcome.must(verdict.answers.total() >= wanted, f"at least {wanted:,} answers are judged")
    missing = [kind for kind in DAMAGE if kind not in struck]
    outcome.say(f"struck: {struck}")
    if options.is_whole:
        outcome.must(not missing, f"every kind struck; {missing} did not")
    return outcome


def weather(options: CheckOptions) -> Outcome:
    """Check 7: each fault alone at 10 %, then all; it is well again soon after."""
    outcome = Outcome()
    kinds = [kind for kind in STORMS if kind != "delay"]
    phases = {kind: [kind] for kind in kinds} | {"all": kinds}
    with scene(options) as found:
        for name, struck in phases.items():
            words = (f"{kind}={STORM_RATE}" for kind in struck)
            found.proxy.faults(_faults(options, *words))
            verdict = judged(options, found, options.minutes * 60 / len(phases))
            found.proxy.faults(_faults(options))
            seconds = back(found.upstream.main, found.follower.network)
            outcome.say(f"{name}: {verdict.answers.total():,} answers, back after {seconds:.1f} s")
            outcome.lines += verdict.differences[:3]
            outcome.must(not verdict.differences, f"{name}: no wrong answer")
            is_soon = seconds <= BACK_SECONDS or options.at_any_speed
            outcome.must(is_soon, f"{name}: pending is back in {BACK_SECONDS:g} s")
    return outcome


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
        with scene(options, trust=trust, extra=PATIENT, faults=f"{kind}=1") as found:
            leave_out = NEED_PROOFS if kind in {"no-proofs", "tip-only-proofs"} else ()
            verdict = judged(options, found, options.minutes * 60 / len(LACKS), leave_out)
            _, said = found.follower.network.probe("/readyz?verbose")
        outcome.say(f"{kind}:")
        judge_verdict(outcome, verdict, 50)
        if trust == "trusted" and not options.stand_in:
            outcome.must("trusted" in said, f"{kind}: /readyz says that it is trusted")
    return outcome
