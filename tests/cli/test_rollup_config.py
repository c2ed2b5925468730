"""Rollup configurations in the format of OP nodes."""

import json
from typing import Any

import pytest

from foreblock.chains.chain_file import preset, profile_of
from foreblock.cli.witness_file import read_rollup_config
from foreblock.errors import BadWitness
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.profile import ChainProfile

SEPOLIA: dict[str, Any] = {
    "genesis": {"l2_time": 1691802540},
    "block_time": 2,
    "seq_window_size": 3600,
    "l2_chain_id": 11155420,
    "canyon_time": 1699981200,
    "delta_time": 1703203200,
    "ecotone_time": 1708534800,
    "fjord_time": 1716998400,
    "granite_time": 1723478400,
    "holocene_time": 1732633200,
    "pectra_blob_schedule_time": 1742486400,
    "isthmus_time": 1744905600,
    "interop_message_expiry_window": 3600,
    "chain_op_config": {
        "eip1559Elasticity": 6, "eip1559Denominator": 50, "eip1559DenominatorCanyon": 250,
    },
}  # fmt: skip
THEN = 1744905600  # Isthmus


def read(time: int = THEN, **changed: Any) -> ChainProfile:  # noqa: ANN401, of JSON
    config = {key: value for key, value in (SEPOLIA | changed).items() if value != "gone"}
    return read_rollup_config(JsonValue.parse(json.dumps(config).encode(), BadWitness), time)


def test_it_says_what_the_preset_says() -> None:
    known = profile_of(preset("op-sepolia"))
    found = read()
    assert known.optimism is not None
    assert found.optimism is not None
    count = len(found.optimism.forks)
    assert found.optimism.forks == known.optimism.forks[:count]
    assert (found.chain_id, found.block_time) == (known.chain_id, known.block_time)
    for time in (THEN - 1, THEN):
        assert found.rules(1, time, merged=True) == known.rules(1, time, merged=True)
        assert found.elasticity(found.rules(1, time, merged=True)) == (6, 250)


def test_constants_that_are_left_out_are_those_of_op_mainnet() -> None:
    assert read(chain_op_config="gone") == read()


def test_an_unknown_fork_is_refused_once_it_has_begun() -> None:
    read(interop_time=THEN + 1, later_time=None)
    with pytest.raises(BadWitness, match="interop_time: a fork that foreblock cannot execute"):
        read(THEN + 1, interop_time=THEN + 1)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"l2_chain_id": "gone"}, "l2_chain_id: missing"),
        ({"block_time": -2}, "block_time: "),
        ({"fjord_time": 1}, "fjord_time: begins before the fork before it"),
        ({"chain_op_config": {"eip1559Elasticity": 0}}, "eip1559Elasticity: must not be zero"),
    ],
)
def test_what_cannot_be_meant_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(BadWitness, match=why):
        read(**changed)
