"""The client behind a balancer: it requires its last seen commit, and retries as instructed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import NotAnAnswer
from foreblock.upstream.rpc_client import TRIES, Endpoint, ShownCommit, pause_before_next
from support.each_case import each_case
from support.servers.toy_endpoint import HttpRequest, ToyResponse, http_endpoint

BEHIND = "commit {} is not here yet, this instance is at {}\n"


@dataclass
class Balanced:
    """Instances at these commits in turn, behind one address; 0 is not foreblock."""

    commits: list[int]
    pause: str = "0"
    snapshot_name: str = "Foreblock-Snapshot"
    demanded: list[str | None] = field(default_factory=list)  # of each request
    asked: threading.Event = field(default_factory=threading.Event)

    def answer(self, demanded: str | None) -> tuple[int, dict[str, str], str]:
        commit = self.commits[len(self.demanded) % len(self.commits)]
        self.demanded.append(demanded)
        self.asked.set()
        if commit and commit < int(demanded or 0):
            return 503, {"Retry-After": self.pause}, BEHIND.format(demanded, commit)
        snapshot = {self.snapshot_name: f"commit={commit}; latest=0x1:0x00"} if commit else {}
        return 200, snapshot, f'{{"id":{{}},"result":{commit}}}'


@contextmanager
def serving(balanced: Balanced) -> Iterator[str]:
    def reply(request: HttpRequest) -> ToyResponse:
        number = request.body.decode().partition('"id": ')[2].partition(",")[0]
        status, headers, text = balanced.answer(request.headers["Foreblock-Min-Commit"])
        return ToyResponse(status, text.replace("{}", number).encode(), headers)

    with http_endpoint(reply) as url:
        yield url


def test_answers_never_go_backwards() -> None:
    balanced = Balanced([5, 3, 7, 6, 9])
    with serving(balanced) as url, Endpoint(url) as endpoint:
        assert [endpoint.request("x") for _ in range(3)] == [5, 7, 9]
        assert balanced.demanded == [None, "5", "5", "7", "7"]


def test_nothing_is_demanded_of_other_servers() -> None:
    balanced = Balanced([0])
    with serving(balanced) as url, Endpoint(url) as endpoint:
        assert [endpoint.request("x") for _ in range(3)] == [0, 0, 0]
        assert balanced.demanded == [None] * 3


def test_proxies_may_write_names_of_headers_as_they_like() -> None:
    balanced = Balanced([5, 3, 6], snapshot_name="foreblock-snapshot")
    with serving(balanced) as url, Endpoint(url) as endpoint:
        assert [endpoint.request("x") for _ in range(2)] == [5, 6]


def test_a_commit_that_does_not_come_is_an_error_once_and_then_given_up() -> None:
    """For example if a chain is restarted from genesis while `foreblock watch` shows it."""
    balanced = Balanced([5])
    with serving(balanced) as url, Endpoint(url) as endpoint:
        assert endpoint.request("x") == 5
        balanced.commits = [2]
        with pytest.raises(NotAnAnswer, match=r"HTTP 503 commit 5 is not here yet.* at 2"):
            endpoint.request("x")
        assert balanced.demanded == [None, *["5"] * TRIES]
        assert [endpoint.request("x") for _ in range(2)] == [2, 2]
        assert balanced.demanded[-2:] == [None, "2"]


def test_pauses_end_with_the_timeout() -> None:
    balanced = Balanced([5], pause="2")
    with serving(balanced) as url, Endpoint(url, timeout=1.5) as endpoint:
        endpoint.request("x")
        balanced.commits = [2]
        with pytest.raises(NotAnAnswer, match="HTTP 503"):
            endpoint.request("x")
        assert len(balanced.demanded) == 2, "the pause is longer than the timeout"


@each_case(
    ("status", "pause", "expected"),
    [
        (503, "1", 1.0), (503, "0", 0.0), (503, "3", None), (503, "1.5", None), (503, "-1", None),
        (503, "Fri, 31 Dec 1999 23:59:59 GMT", None), (200, "1", None), (429, "1", None),
        (503, "9" * 100, None), (503, "", None),
    ],
)  # fmt: skip
def test_when_to_ask_again(status: int, pause: str, expected: float | None) -> None:
    assert pause_before_next(status, {"retry-AFTER": pause}) == expected
    assert pause_before_next(status, {}) is None


@given(st.lists(st.none() | st.integers(0, 2**64 - 1) | st.text(max_size=30)))
def test_the_highest_commit_is_demanded(shown: list[int | str | None]) -> None:
    seen, highest = ShownCommit(), 0
    for each in shown:
        if isinstance(each, int):
            seen.see({"Foreblock-Snapshot": f"commit={each}; latest=0x1:0x00"})
            highest = max(highest, each)
        else:
            seen.see({} if each is None else {"Foreblock-Snapshot": each.replace("commit", "")})
        assert seen.demand() == ({"Foreblock-Min-Commit": str(highest)} if highest else {})
