"""The requests that fuzzing began with or found: both ways answer each with the same bytes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock.methods.options import Options
from fuzz.conversation import TwoWays

CORPUS = sorted((Path(__file__).parents[2] / "fuzz" / "corpus" / "fast_path").iterdir())
SHORT = ("balance-latest", "balance-pending", "block-latest", "block-pending-full", "call-latest",
         "call-pending-data", "batch", "spaces")  # fmt: skip


@pytest.fixture(scope="module", params=["preconf", "ethereum"])
def ways(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[TwoWays]:
    found = TwoWays(tmp_path_factory.mktemp("fuzz") / "store", Options(request.param))
    yield found
    found.close()


def test_corpus_is_there() -> None:
    assert {path.name for path in CORPUS} >= set(SHORT)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_both_ways_answer_the_same(ways: TwoWays, path: Path) -> None:
    assert ways.disagreement(path.read_bytes()) is None


@pytest.mark.parametrize("name", SHORT)
def test_engine_does_answer_what_is_usual(ways: TwoWays, name: str) -> None:
    """Else the two ways would be one."""
    (path,) = (path for path in CORPUS if path.name == name)
    assert ways.is_short(path.read_bytes())
