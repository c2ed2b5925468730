"""anvil_mine and the distance of blocks."""

from pathlib import Path

import pytest

from support.chains.dev_service import dev_service


@pytest.mark.parametrize(
    ("params", "apart"), [(["0x3"], 9), (["0x3", "0x0"], 9), (["0x3", 0], 9), (["0x3", "0x4"], 4)]
)
def test_blocks_are_as_far_apart_as_was_set_unless_it_is_said(
    tmp_path: Path, params: list[object], apart: int
) -> None:
    """viem's test client says 0 where no interval is given."""
    with dev_service(tmp_path / "store") as (_, client):
        client.ask("anvil_setBlockTimestampInterval", 9)
        client.ask("anvil_mine", *params)
        times = [
            int(client.ask("eth_getBlockByNumber", hex(number), False)["timestamp"], 16)
            for number in (2, 3)
        ]
    assert times[1] - times[0] == apart
