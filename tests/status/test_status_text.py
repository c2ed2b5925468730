"""The status of a network as text, and as JSON."""

import msgspec
from msgspec import structs

from foreblock.secret_urls import redact_urls
from foreblock.status.network_status import (
    AuditStatus,
    BaseStatus,
    BlockStatus,
    CanonicalStatus,
    ChainStatus,
    FeedStatus,
    FollowStatus,
    InstanceStatus,
    LogStatus,
    MessageStatus,
    NetworkStatus,
    PendingStatus,
    RootStatus,
    RulesStatus,
    SourceStatus,
    UpstreamStatus,
    WorkingSetStatus,
    decode_status,
    map_texts,
)
from foreblock.status.status_text import problems, source_details, status_lines

FEED = FeedStatus("ws://a/ws", True, 2, 40, 1, 3, 2.0, "gone")
NEW = FeedStatus("ws://b/ws", False, 0, 0, 0, 0, None)
OUTCOMES = {"Applied": 30, "Duplicate": 4, "Gap": 1, "Orphan": 2, "Diverged": 1, "SealForeign": 5}
CANONICAL = CanonicalStatus("http://c", 7, 5, 1, "timed out")
LOG = LogStatus(is_open=True, connected=True, epoch=3, sequence=8812, commit=9120, silence=0.1)
CHAIN = ChainStatus(
    9, BlockStatus(7, "0x07", 1.04), PendingStatus(8, "0x08", 0.126, 3), 0, 5, 2, 1,
    base=BaseStatus(1, "0x01", 2, "proven"), rules_end=RulesStatus(50, "fork lagoon"),
    addresses_to_index=4, first_edit=6,
)  # fmt: skip
UPSTREAM = UpstreamStatus(
    "https://a", "geth", True, 10, 40, {"rate limited": 2}, 0.25, 2.0, 0.5, "add units"
)
FOLLOW = FollowStatus(
    anchorings=1, last_anchoring="too far", state={"keys": 3}, last_error="no upstream",
    upstreams=(UPSTREAM,), roots=RootStatus(812, 1043, 17, 0),
    working_set=WorkingSetStatus(212, 29, 226, 200, is_fetching=True), templates=8,
    audit=AuditStatus({"Untrue": 1, "proven": 812}, 3, 0.4, False, "slot 0x2"),
)  # fmt: skip


def lines(source: SourceStatus) -> list[str]:
    return [f"{name}: {text}" for name, text in source_details(source)]


def feeds(
    missing: str = "", error: str = "", canonical: CanonicalStatus | None = None
) -> list[str]:
    messages = MessageStatus(OUTCOMES, missing, error)
    return lines(SourceStatus(feeds=(FEED, NEW), messages=messages, canonical=canonical))


def test_feeds_have_their_age_and_losses() -> None:
    assert feeds() == [
        "feed: ws://a/ws: connected, last message 2.0 s ago, 40 messages, 2 connections, "
        "3 malformed, 1 dropped; last lost: gone",
        "feed: ws://b/ws: not connected, no message yet, 0 messages, 0 connections, "
        "0 malformed, 0 dropped",
        "following: applied 30, duplicates 4, gaps 3, divergences 1, overruns 0, resyncs 5",
        "outcomes: Applied 30, Diverged 1, Duplicate 4, Gap 1, Orphan 2, SealForeign 5",
    ]


def test_a_missing_block_is_named_and_whether_it_can_be_fetched() -> None:
    missing = "missing: block 0xab"
    assert missing + "; no canonical source is set, so it cannot be fetched" in feeds("0xab")
    found = feeds("0xab", "ws://a/ws: bad", CANONICAL)
    assert missing in found
    assert "last error: ws://a/ws: bad" in found
    assert "canonical: http://c: at block 7, 5 blocks fetched, 1 failures; last: timed out" in found


def test_a_node_of_a_log_says_where_it_is_and_whether_its_writer_is_reachable() -> None:
    at = "log: epoch 3, sequence 8812, commit 9120"
    assert lines(SourceStatus(log=structs.replace(LOG, behind=0.18))) == [
        f"{at}, 0.18 s behind, writer reachable"
    ]
    silent, early = structs.replace(LOG, silence=5.0), structs.replace(LOG, silence=None)
    assert lines(SourceStatus(log=silent)) == [f"{at}, 0.00 s behind, writer silent for 5.0 s"]
    assert lines(SourceStatus(log=early)) == [f"{at}, 0.00 s behind, no message of the writer yet"]
    writer = structs.replace(LOG, writes=True, waits=True, skipped=1, last_skipped="noise")
    assert lines(SourceStatus(log=writer)) == [
        f"{at}, 0.00 s behind, this node writes, and waits for the log, 1 message skipped (noise)"
    ]
    closed = structs.replace(LOG, is_open=False)
    assert lines(SourceStatus(log=closed)) == ["log: not connected yet; the local store is served"]


def test_a_followed_chain_shows_its_state_audit_and_upstreams() -> None:
    assert lines(SourceStatus(follow=FOLLOW)) == [
        "anchored again: 1 times; last: too far",
        "state: keys 3; last: no upstream",
        "audit: Untrue 1, proven 812, 3 wait for proofs, the oldest for 0.4 s, "
        "unproven values are refused for now; last: slot 0x2",
        "upstream: https://a: geth, proves state, 10 requests, 40 units, 250 ms, rests for 2.0 s, "
        "paused for 0.5 s, add units; refused: rate limited 2",
        "roots: 812 computed, the last of block 1043; 17 proofs requested, 0 requests failed",
        "hot set: 212 accounts with 29 slots; 200 of 226 keys fetched again so far",
        "templates: of 8 kinds of calls",
    ]


def test_a_network_shows_its_chain_before_its_source() -> None:
    status = NetworkStatus("main", "dev", True, CHAIN, source=SourceStatus(log=LOG), source_age=0.3)
    assert status_lines(status) == (
        "commit: 9",
        "latest: block 7, 1.0 s old, 0x07",
        "pending: block 8, flashblock 3, 0.13 s old, 0x08",
        "distance: pending is 1 above latest",
        "base: block 1, epoch 2, 0x01",
        "trust: proven",
        "rules: not known since block 50 (fork lagoon); no calls, no pending",
        "states: from block 0 on",
        "logs: 5 blocks to index",
        "addresses: 4 blocks to index",
        "maintenance: 2 blocks to fold, 1 item to clear",
        "state edits: from block 6 on; followers need accept_state_edits for them",
        "source: as it was 0.3 s ago",
        "log: epoch 3, sequence 8812, commit 9120, 0.00 s behind, writer reachable",
    )


def test_problems_are_details_that_need_attention() -> None:
    assert problems(NetworkStatus("main", "dev", True, CHAIN, source=SourceStatus(log=LOG))) == []
    source = SourceStatus(
        log=structs.replace(LOG, silence=3.0), feeds=(FEED, NEW),
        messages=MessageStatus(OUTCOMES, "0x12", "ws://a/ws: bad"),
    )  # fmt: skip
    waiting = structs.replace(CHAIN, pending=None)
    found = NetworkStatus("main", "feed", ready=False, chain=waiting, source=source)
    assert problems(found) == [
        "not ready: no flashblock came in time, so pending means latest",
        "missing: block 0x12; no canonical source is set, so it cannot be fetched",
        "last error: ws://a/ws: bad",
        "feed: ws://b/ws: not connected, no message yet, 0 messages, 0 connections, "
        "0 malformed, 0 dropped",
        "log: epoch 3, sequence 8812, commit 9120, 0.00 s behind, writer silent for 3.0 s",
    ]
    failed = SourceStatus(failure="the disk is full", is_running=False)
    gone = NetworkStatus("main", "dev", ready=False, store_error="it was removed", source=failed)
    assert problems(gone) == [
        "not ready",
        "store: it was removed",
        "failed: the disk is full; it will be restarted",
    ]
    assert lines(SourceStatus(failure="the disk is full")) == ["restarted: after the disk is full"]


def test_the_json_has_everything() -> None:
    source = SourceStatus(LOG, (FEED, NEW), MessageStatus(OUTCOMES), CANONICAL, FOLLOW, "failed")
    network = NetworkStatus("main", "follow", True, CHAIN, source=source, source_age=0.3)
    instance = InstanceStatus(True, (network,))
    assert decode_status(msgspec.json.encode(instance).decode()) == instance
    for other in ("", "not found", "{}", '{"ready":1,"networks":[]}', "[" * 100_000):
        assert decode_status(other) is None


def test_secrets_of_urls_are_removed_from_every_text() -> None:
    url = "wss://me:hunter2@feed.example/v2/hunter2?key=hunter2"
    source = SourceStatus(
        feeds=(structs.replace(FEED, url=url, last_error=f"no response from {url}"),),
        messages=MessageStatus({}, "", f"{url}: odd"),
        canonical=CanonicalStatus(url, 7, 5, 1, f"{url} does not respond"),
        failure=url,
    )
    found = map_texts(source, redact_urls)
    assert b"hunter2" not in msgspec.json.encode(found)
    assert sum("feed.example" in line for line in lines(found)) == 4
    assert map_texts(source, str) == source
