import json
from pathlib import Path

import pytest

from foreblock.errors import BadForkChoice
from foreblock.ledger.importing.chain_files import ForkChoice, read_fork_choice
from support.each_case import each_case

HASHES = {"headBlockHash": 1, "safeBlockHash": 2, "finalizedBlockHash": 3}


def request(**changes: object) -> bytes:
    state = {key: "0x" + f"{number:064x}" for key, number in HASHES.items()} | changes
    return json.dumps({"method": "engine_forkchoiceUpdatedV3", "params": [state, None]}).encode()


def test_three_hashes_are_read() -> None:
    one, two, three = (number.to_bytes(32) for number in HASHES.values())
    assert read_fork_choice(request()) == ForkChoice(one, two, three)


def test_zeros_mean_not_known_yet() -> None:
    zero = "0x" + "00" * 32
    choice = read_fork_choice(request(safeBlockHash=zero, finalizedBlockHash=zero))
    assert (choice.safe, choice.finalized) == (None, None)


@each_case(
    ("text", "where"),
    [
        (b"", "file"),
        (b"[]", "file"),
        (b"{}", "method"),
        (b'{"method": "eth_call", "params": []}', "method"),
        (b'{"method": "engine_forkchoiceUpdatedV3", "params": []}', "params[0]"),
        (b'{"method": "engine_forkchoiceUpdatedV3", "params": {}}', "params"),
        (request(headBlockHash="0x12"), "params[0].headBlockHash"),
        (request(safeBlockHash=None), "params[0].safeBlockHash"),
        (request(finalizedBlockHash=7), "params[0].finalizedBlockHash"),
    ],
)
def test_other_files_are_refused(text: bytes, where: str) -> None:
    with pytest.raises(BadForkChoice) as caught:
        read_fork_choice(text)
    assert caught.value.where == where


def test_published_file_is_read(conformance: Path) -> None:
    choice = read_fork_choice((conformance / "headfcu.json").read_bytes())
    assert choice.head == choice.safe == choice.finalized
