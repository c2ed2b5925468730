"""The inputs that fuzzing began with or found: none of them breaks a promise."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from foreblock.settings import Settings
from fuzz.answering import Answering
from fuzz.conversation import TwoWays
from fuzz.talking import Talking
from support.each_case import Test, each_case

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
SHORT = ("balance-latest", "balance-pending", "block-latest", "block-pending-full", "call-latest",
         "call-pending-data", "batch", "spaces")  # fmt: skip


def corpus(target: str) -> Callable[[Test], Test]:
    """All inputs of a target."""
    paths = sorted((CORPUS / target).iterdir())
    return each_case("path", paths, ids=lambda path: path.name)


@pytest.fixture(scope="module", params=["preconf", "ethereum"])
def ways(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[TwoWays]:
    found = TwoWays(tmp_path_factory.mktemp("fuzz") / "store", Settings(dialect=request.param))
    yield found
    found.close()


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answering]:
    found = Answering(tmp_path_factory.mktemp("fuzz") / "store")
    yield found
    found.close()


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talking]:
    found = Talking(tmp_path_factory.mktemp("fuzz") / "store")
    yield found
    found.close()


def test_corpus_is_there() -> None:
    assert {path.name for path in (CORPUS / "fast_path").iterdir()} >= set(SHORT)


@corpus("fast_path")
def test_both_ways_answer_the_same(ways: TwoWays, path: Path) -> None:
    assert ways.disagreement(path.read_bytes()) is None


@each_case("name", SHORT)
def test_engine_does_answer_what_is_usual(ways: TwoWays, name: str) -> None:
    """Otherwise the two paths would be the same."""
    assert ways.is_short((CORPUS / "fast_path" / name).read_bytes())


@corpus("requests")
def test_requests_have_answers_of_their_shape(answering: Answering, path: Path) -> None:
    assert answering.broken(path.read_bytes()) is None


@corpus("websocket")
def test_conversations_end_well(talking: Talking, path: Path) -> None:
    assert talking.broken(path.read_bytes()) is None
