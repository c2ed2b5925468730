"""How a followed network is, in words."""

from dataclasses import dataclass

from foreblock.sources.feed_status import CanonicalState, FeedState, Following, feed_facts

SECOND = 10**9
FEED = FeedState("ws://a/ws", True, 2, 40, 1, 3, 8 * SECOND, "gone")
NEW = FeedState("ws://b/ws", False, 0, 0, 0, 0, None, "")
COUNTERS = {"Applied": 30, "Duplicate": 4, "Gap": 1, "Orphan": 2, "Diverged": 1, "SealForeign": 5}


@dataclass(frozen=True)
class Case:
    missing: bytes | None = None
    canonical: CanonicalState | None = None
    error: str = ""


def lines(case: Case) -> tuple[str, ...]:
    following = Following(COUNTERS, case.missing, case.error)
    return feed_facts([FEED, NEW], following, case.canonical, 10 * SECOND)


def test_feeds_say_their_age_and_what_they_lost() -> None:
    assert lines(Case()) == (
        "feed: ws://a/ws: connected, last message 2.0 s ago, 40 messages, 2 connections, "
        "3 malformed, 1 dropped; last lost: gone",
        "feed: ws://b/ws: not connected, nothing heard yet, 0 messages, 0 connections, "
        "0 malformed, 0 dropped",
        "following: applied 30, duplicates 4, gaps 3, divergences 1, overruns 0, resyncs 5",
        "outcomes: Applied 30, Diverged 1, Duplicate 4, Gap 1, Orphan 2, SealForeign 5",
    )


def test_what_is_missing_is_named_and_whether_it_can_be_fetched() -> None:
    missing = "missing: block 0x" + "ab" * 32
    alone = lines(Case(missing=b"\xab" * 32))
    assert missing + "; no canonical source is set, so it cannot be fetched" in alone
    canonical = CanonicalState("http://c", 7, 5, 1, "timed out")
    found = lines(Case(missing=b"\xab" * 32, canonical=canonical, error="ws://a/ws: bad"))
    assert missing in found
    assert "last error: ws://a/ws: bad" in found
    assert "canonical: http://c: at block 7, 5 blocks fetched, 1 failures; last: timed out" in found


def test_secrets_of_urls_are_not_told() -> None:
    url = "wss://me:hunter2@feed.example/v2/hunter2?key=hunter2"
    feed = FEED._replace(url=url, last_error=f"no response from {url}")
    canonical = CanonicalState(url, 7, 5, 1, f"{url} does not answer")
    told = feed_facts([feed], Following({}, None, f"{url}: odd"), canonical, 10 * SECOND)
    assert "hunter2" not in "".join(told)
    assert sum("feed.example" in line for line in told) == 3
