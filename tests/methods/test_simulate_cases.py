"""The public suite's simulations: literally as other nodes, and in the published contract."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foreblock.conformance.dialects import promised
from support.payloads.cases import read_case
from support.payloads.headers import header_hash
from support.servers.asking import Asker


@pytest.fixture(scope="module")
def cases(conformance: Path) -> list[tuple[str, bytes, Any]]:
    found = [
        (path.stem, body, reply)
        for path in sorted((conformance / "eth_simulateV1").glob("*.io"))
        for body, reply in read_case(path)
    ]
    assert len(found) >= 56
    return found


def test_replies_equal_those_of_other_nodes(
    cases: list[tuple[str, bytes, Any]], published_ethereum: Asker
) -> None:
    for name, body, expected in cases:
        assert json.loads(published_ethereum.reply(body).body) == expected, name


def test_replies_of_the_published_contract_differ_where_it_says(
    cases: list[tuple[str, bytes, Any]], published_preconf: Asker
) -> None:
    for name, body, reply in cases:
        expected = promised("preconf", json.loads(body), reply)
        assert json.loads(published_preconf.reply(body).body) == expected, name


def finished(cases: list[tuple[str, bytes, Any]], client: Asker) -> Iterator[list[dict[str, Any]]]:
    for _, body, _ in cases:
        reply = json.loads(client.reply(body).body)
        if "result" in reply:
            yield reply["result"]


@pytest.mark.parametrize("dialect", ["ethereum", "preconf"])
def test_every_hash_recomputes_from_the_fields_beside_it(
    cases: list[tuple[str, bytes, Any]], dialect: str, request: pytest.FixtureRequest
) -> None:
    client: Asker = request.getfixturevalue(f"published_{dialect}")
    seen = 0
    for blocks in finished(cases, client):
        for block in blocks:
            assert block["hash"] == header_hash(block)
            assert (set(block["stateRoot"]) == set("0x")) == (dialect == "preconf")
            seen += 1
    assert seen > 50


def test_fillers_count_though_they_are_not_shown(ethereum: Asker, preconf: Asker) -> None:
    payload = {"blockStateCalls": [{"blockOverrides": {"number": "0x3a"}}, {}]}
    shown = preconf.ask("eth_simulateV1", payload, "latest")
    everything = ethereum.ask("eth_simulateV1", payload, "latest")
    assert [block["number"] for block in shown] == ["0x3a", "0x3b"]
    assert [block["number"] for block in everything] == ["0x37", "0x38", "0x39", "0x3a", "0x3b"]
    assert shown[0]["timestamp"] == everything[3]["timestamp"] == hex(540 + 4 * 12)
    assert shown[0]["parentHash"] != preconf.ask("eth_getBlockByNumber", "latest", False)["hash"]
    for before, block in pairwise(everything):
        assert block["parentHash"] == before["hash"]
