"""The public suite's cases: literally as other nodes, and in the published contract."""

import json
from pathlib import Path

import pytest

from support.payloads.cases import METHODS, in_preconf, read_case
from support.servers.asking import Asker


@pytest.fixture(scope="module", params=METHODS)
def cases(conformance: Path, request: pytest.FixtureRequest) -> list[Path]:
    found = sorted((conformance / request.param).glob("*.io"))
    assert found, f"no cases of {request.param}"
    return found


def test_replies_equal_those_of_other_nodes(cases: list[Path], published_ethereum: Asker) -> None:
    for path in cases:
        for body, expected in read_case(path):
            assert json.loads(published_ethereum.reply(body).body) == expected, path.name


def test_replies_of_the_published_contract_differ_where_it_says(
    cases: list[Path], published_preconf: Asker
) -> None:
    for path in cases:
        for body, reply in read_case(path):
            expected = in_preconf(json.loads(body), reply)
            assert json.loads(published_preconf.reply(body).body) == expected, path.name
