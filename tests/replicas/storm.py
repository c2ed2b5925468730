"""Random kills, halts and cuts while clients wander; then one log and equal stores (3, 1).

PYTHONPATH=tests python tests/replicas/run.py storm --kills 200 --cuts 50
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from replicas.fleet import Fleet, fleet
from replicas.places import making_places
from replicas.stopped import judge_fleet
from replicas.wanderer import Wanderers

CLIENTS = 4
FAULTS = "--faults=restart=0.02,tail=0.1,reorg=0.02"


@dataclass(frozen=True)
class StormPlan:
    """The number of each kind of event."""

    kills: int
    cuts: int
    seed: int = 0
    load: int = 50  # transactions a second


def run_storm(folder: Path, plan: StormPlan, say: Callable[[str], None]) -> list[str]:
    """Run the storm; return the failures."""
    chance = random.Random(plan.seed)
    events = ["kill"] * plan.kills + ["cut"] * plan.cuts
    chance.shuffle(events)
    with (
        making_places(3) as places,
        fleet(folder, places, f"--load={plan.load}", FAULTS) as made,
        Wanderers(lambda: made.nodes, CLIENTS, plan.seed).wandering() as seen,
    ):
        wrong: list[str] = []
        for number, event in enumerate(events, 1):
            commit = _now(made)
            told = _cut(made, chance, wrong) if event == "cut" else _kill(made, chance)
            seconds = _until_past(made, commit)
            say(f"{number}/{len(events)} {told}: next commit after {seconds:.1f} s")
        made.level()
        say(seen.summary())
        found, told = judge_fleet(made, seen)
        say(told)
        return wrong + found


def _kill(made: Fleet, chance: random.Random) -> str:
    """Kill a node, its writer, or a NATS server, and start it again."""
    kind = chance.choice(("node", "writer process", "NATS server"))
    if kind == "NATS server":
        server = chance.choice(made.servers)
        server.kill()
        time.sleep(chance.random() * 2)
        server.start()
        return "a NATS server killed"
    node = chance.choice(made.nodes)
    if kind == "node":
        node.kill()
        time.sleep(chance.random() * 3)
        node.start()
    else:
        node.kill_writer()
    return f"{kind} of {node.name} killed"


def _cut(made: Fleet, chance: random.Random, wrong: list[str]) -> str:
    """Cut a place off, with its NATS server and its nodes, for a while."""
    place = chance.choice(made.places)
    seconds = 1 + 7 * chance.random()
    inside = [each for each in made.nodes if each.place == place]
    if not place.is_apart:
        for node in inside:
            node.halt()
        time.sleep(seconds)
        for node in inside:
            node.resume()
        return f"place {place.number} halted for {seconds:.1f} s"
    place.cut()
    # The end of the log at the cut, and one append in flight.
    outside = [each.commit() for each in made.nodes if each.place != place]
    most = max(*outside, *(each.commit_inside() for each in inside)) + 1
    time.sleep(seconds)
    for node in inside:
        after = node.commit_inside()
        if after > most:
            wrong.append(f"{node.name} went to {after} while cut off, the log was at {most}")
    place.heal()
    return f"place {place.number} cut off for {seconds:.1f} s"


def _now(made: Fleet) -> int:
    return max(each.commit() for each in made.nodes)


def _until_past(made: Fleet, commit: int) -> float:
    """Seconds until every node has more than this commit."""
    began = time.monotonic()
    for node in made.nodes:
        node.wait(commit=commit + 1)
    return time.monotonic() - began
