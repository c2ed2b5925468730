"""How a source is, told to the workers."""

from foreblock.bus.bus_client import BusClient
from foreblock.bus.frames import Frames, frame
from foreblock.bus.messages import SourceFacts, ToWorker

FACTS = SourceFacts("main", 5, ("feed: here", "following: applied 1"))


def test_facts_cross_the_bus_unchanged() -> None:
    assert list(Frames(ToWorker).feed(frame(FACTS))) == [FACTS]


def test_a_worker_remembers_what_it_heard_last_of_each_network() -> None:
    link = BusClient("nowhere")
    assert link.source_facts("main") is None
    link.on_message(SourceFacts("main", 1, ("old",)))
    link.on_message(FACTS)
    link.on_message(SourceFacts("test", 2, ("other",)))
    assert link.source_facts("main") == FACTS
