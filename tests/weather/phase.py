"""One kind of fault: a dev chain with it, a service that follows, clients, a verdict."""

import argparse
import multiprocessing
import re
import time
from dataclasses import dataclass
from pathlib import Path

from checker.gate import Gate
from checker.journal import Journal, JournalWriter, read_journal
from checker.judge import Verdict, judge_journal, work_out
from checker.moment import find_moments, names_lie
from checker.run import OPTIONS, chain, hammers, load
from support.servers.dev_processes import Following, children, dev_chain, following
from support.servers.waiting import PATIENCE, until
from weather.convergence import Lateness, lateness
from weather.faults import Bound, words
from weather.feed_recorder import FeedRecorder
from weather.killing import kill_again_and_again
from weather.recording import SourceRecorder
from weather.watching import Watcher

WORKERS = 2
# The scheduling delay of a client on the same machine, and of this process.
SLACK_NS = 500 * 10**6
NEVER = ("Failed", "CanonicalDiverged", "BadCanonical")  # outcomes that no fault causes
SOON = 1.5  # seconds; readiness is checked every half second


@dataclass(frozen=True, slots=True)
class Phase:
    """The injected faults, and the expected result."""

    name: str
    rates: dict[str, float]
    bound: Bound | None  # None: it stops permanently, and reports so
    canonical: bool = True
    block_time: int = 1  # seconds
    kills: int = 0  # of the writer process; the phase lasts until they are done

    @property
    def allowed_ns(self) -> int:
        """The maximum delay of a flashblock for a client."""
        return 0 if self.bound is None else self.bound.ns(self.block_time) + SLACK_NS


@dataclass(slots=True)
class Outcome:
    """The results of a phase."""

    phase: Phase
    verdict: Verdict
    late: Lateness
    said: str  # at the end, by /readyz?verbose
    is_ready: bool
    unready: float  # share of the time
    has_same_writer: bool
    snapshot: str  # the last one
    honest_after: float  # seconds from the last pending block to the first report of its end

    def complaints(self, *, at_any_speed: bool = False) -> list[str]:
        """The violated promises, without times that depend on other load."""
        found = []
        if self.verdict.contradictions:
            found.append(f"{len(self.verdict.contradictions)} contradictions")
        unanswered = self.verdict.unjudged["no response"]
        if unanswered:
            found.append(f"{unanswered} requests were not answered")
        if not self.has_same_writer and not self.phase.kills:
            found.append("the writer did not survive")
        found += [f"{counted(self.said, name)} times {name}" for name in NEVER
                  if counted(self.said, name)]  # fmt: skip
        if at_any_speed and self.phase.bound:
            return found
        return found + (self._not_in_time() if self.phase.bound else self._not_honest())

    def _not_in_time(self) -> list[str]:
        allowed = self.phase.allowed_ns
        if self.late.worst_ns <= allowed:
            return []
        return [f"{self.late.worst_ns / 1e9:.2f} s late, {allowed / 1e9:.2f} s are allowed"]

    def _not_honest(self) -> list[str]:
        """The false reports of a service that cannot continue."""
        found = []
        if self.is_ready:
            found.append("it reports readiness")
        if "missing: block 0x" not in self.said or "no canonical source is set" not in self.said:
            found.append("it does not report the missing parts")
        if "pending" in self.snapshot:
            found.append("it still names a pending block")
        if self.honest_after > SOON:
            found.append(f"it took {self.honest_after:.1f} s to say that nothing comes any more")
        return found


def counted(said: str, name: str) -> int:
    """The follower's count of an outcome."""
    found = re.search(rf"\b{name} (\d+)", said.partition("outcomes:")[2])
    return int(found[1]) if found else 0


def fetched(said: str) -> int:
    """The number of blocks from the canonical source."""
    found = re.search(r"(\d+) blocks fetched", said)
    return int(found[1]) if found else 0


def run(phase: Phase, folder: Path, options: argparse.Namespace) -> Outcome:
    """Inject the faults, and judge the responses."""
    journal, data = folder / "journal", folder / "dev"
    with JournalWriter(journal, "chain") as writer:
        writer.chain(chain(phase.block_time, followed=True))
    if not phase.canonical:
        # Blocks end at whole multiples of their time, so the first one is longer.
        time.sleep(phase.block_time - time.time() % phase.block_time)
    with (
        dev_chain(
            *OPTIONS, f"--block-time={phase.block_time}", "--workers=1", f"--data={data}",
            f"--seed={options.seed}", *_faults(phase),
        ) as dev,
        SourceRecorder(data / "main", journal) as recorder,
        FeedRecorder(dev.main.feed, journal),
        following(
            data / "main" / "genesis.json", folder / "followed", dev.main.feed, workers=WORKERS,
            canonical=dev.main.url if phase.canonical else "", options=("--pending-nonce=state",),
        ) as service,
    ):  # fmt: skip
        writers = children(service.process.pid)["writer"]
        if phase.bound is not None:
            until(lambda: service.network.probe("/readyz")[0] == 200, "it has come along")
        watcher = _hammer(phase, service, dev.main.url, journal, options)
        status, said = service.network.probe("/readyz?verbose")
        has_same_writer = children(service.process.pid)["writer"] == writers
        recorder.wait_for_blocks(3, PATIENCE)
    found = read_journal(journal)
    verdict, late = _judge(found, watcher)
    return Outcome(
        phase=phase, verdict=verdict, late=late, said=said, is_ready=status == 200,
        unready=len(watcher.unready) / max(watcher.looked, 1), has_same_writer=has_same_writer,
        snapshot=max(found.exchanges, key=lambda each: each.received_ns).snapshot or "",
        honest_after=_honest_after(found, watcher),
    )  # fmt: skip


def _faults(phase: Phase) -> list[str]:
    return [f"--faults={','.join(words(phase.rates))}"] if phase.rates else []


def _hammer(
    phase: Phase, service: Following, source: str, journal: Path, options: argparse.Namespace
) -> Watcher:
    """Send requests to the service and transactions to its source until stopped."""
    context = multiprocessing.get_context("spawn")
    gate = Gate(context.Barrier(options.clients + 2), context.Event())
    processes = [
        *hammers(context, service.network.url, journal, options, gate),
        load(context, source, journal, options, gate),
    ]
    for process in processes:
        process.start()
    gate.start.wait(PATIENCE)
    with Watcher(service.network, journal) as watcher:
        if phase.kills:
            kill_again_and_again(service, phase.kills, options.seed)
        else:
            time.sleep(options.minutes * 60)
    gate.stop.set()
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit(f"{process.name} ended with {process.exitcode}")
    return watcher


def _judge(found: Journal, watcher: Watcher) -> tuple[Verdict, Lateness]:
    truth = work_out(found)
    verdict = judge_journal(found, truth)
    told = [each for each in found.exchanges if each.answer and not names_lie(truth, each)]
    moments, _ = find_moments(truth, told)
    owed = [place for place in truth.places if place.received_ns >= watcher.begun_ns]
    return verdict, lateness(owed, moments, watcher.end_ns)


def _honest_after(found: Journal, watcher: Watcher) -> float:
    named = [each.received_ns for each in found.exchanges if "pending" in (each.snapshot or "")]
    said = [at for at, _ in watcher.unready]
    if not named or not said:
        return 0.0
    return max(said[0] - max(named), 0) / 1e9
