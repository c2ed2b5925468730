"""The status of a source, sent to the workers."""

from foreblock.bus.bus_client import BusClient
from foreblock.bus.frames import Frames, frame
from foreblock.bus.messages import SourceReport, ToWorker
from foreblock.status.network_status import (
    CanonicalStatus,
    FeedStatus,
    LogStatus,
    MessageStatus,
    SourceStatus,
)

REPORT = SourceReport(
    "main",
    5,
    SourceStatus(
        log=LogStatus(is_open=True, connected=True, epoch=1, sequence=2, commit=3),
        feeds=(FeedStatus("ws://a", True, 1, 2, 0, 0, 0.5, "gone"),),
        messages=MessageStatus({"Applied": 1}, "0x01", "bad"),
        canonical=CanonicalStatus("http://c", None, 0, 1, "timed out"),
    ),
)


def test_a_status_crosses_the_bus_unchanged() -> None:
    assert list(Frames(ToWorker).feed(frame(REPORT))) == [REPORT]


def test_a_worker_keeps_the_last_report_of_each_network() -> None:
    link = BusClient("nowhere")
    assert link.source_report("main") is None
    link.on_message(SourceReport("main", 1, SourceStatus(failure="old")))
    link.on_message(REPORT)
    link.on_message(SourceReport("test", 2, SourceStatus(failure="other")))
    assert link.source_report("main") == REPORT
