"""How a source is, told to the workers."""

from foreblock.bus.frames import Frames, SourceFacts, ToWorker, frame
from foreblock.bus.link import WriterLink

FACTS = SourceFacts("main", 5, ("feed: here", "following: applied 1"))


def test_facts_cross_the_bus_unchanged() -> None:
    assert list(Frames(ToWorker).feed(frame(FACTS))) == [FACTS]


def test_a_worker_remembers_what_it_heard_last_of_each_network() -> None:
    link = WriterLink("nowhere")
    assert link.source_facts("main") is None
    link.hear(SourceFacts("main", 1, ("old",)))
    link.hear(FACTS)
    link.hear(SourceFacts("test", 2, ("other",)))
    assert link.source_facts("main") == FACTS
