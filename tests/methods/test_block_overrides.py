"""Block overrides: the block as seen by a call with overrides."""

from typing import Any

import pytest

from support.chains.long_chain import RICH
from support.each_case import each_case
from support.payloads.bytecode import returning
from support.servers.asking import Asker, error

TO = "0x00000000000000000000000000000000000c0de0"
HASH = "0x" + "ab" * 32
SOMEBODY = "0x" + "cd" * 20


def ask(client: Asker, opcode: str | list[str | int], given: object, block: str = "latest") -> Any:  # noqa: ANN401, it is JSON
    program = [opcode] if isinstance(opcode, str) else opcode
    overrides = {TO: {"code": returning(*program)}}
    answer = client.ask("eth_call", {"to": TO}, block, overrides, given)
    return int(answer, 16) if isinstance(answer, str) else answer


SEEN: list[tuple[str | list[str | int], dict[str, Any], int]] = [
    ("NUMBER", {"number": "0x999"}, 0x999),
    ("NUMBER", {"blockNumber": "0x999"}, 0x999),
    ("NUMBER", {"number": "0x999", "blockNumber": "0x999"}, 0x999),
    ("TIMESTAMP", {"time": "0x999"}, 0x999),
    ("TIMESTAMP", {"timestamp": "0x999"}, 0x999),
    ("GASLIMIT", {"gasLimit": "0x5"}, 5),
    ("COINBASE", {"feeRecipient": SOMEBODY}, int(SOMEBODY, 16)),
    ("COINBASE", {"coinbase": SOMEBODY}, int(SOMEBODY, 16)),
    ("PREVRANDAO", {"prevRandao": HASH}, int(HASH, 16)),
    ("PREVRANDAO", {"random": HASH}, int(HASH, 16)),
    ("BASEFEE", {"baseFeePerGas": "0x5"}, 0),  # hidden from calls without fees
    ("BLOBBASEFEE", {"blobBaseFee": "0x7"}, 7),
    ("PREVRANDAO", {"difficulty": "0x5"}, 0),  # not a proof-of-work block
    ([53, "BLOCKHASH"], {"blockHash": {"0x35": HASH}}, int(HASH, 16)),
    ([54, "BLOCKHASH"], {"number": "0x40", "blockHash": {"0x36": HASH}}, int(HASH, 16)),
    ("NUMBER", {"number": None, "wat": 5}, 54),
    ("NUMBER", {}, 54),
]


@each_case(("program", "given", "seen"), SEEN)
def test_call_sees_the_block_as_overridden(
    preconf: Asker, program: str | list[str | int], given: dict[str, Any], seen: int
) -> None:
    assert ask(preconf, program, given) == seen


def test_mined_block_has_another_difficulty(preconf: Asker) -> None:
    assert ask(preconf, "PREVRANDAO", {"difficulty": "0x5"}, "0x1") == 5


def test_base_fee_is_what_a_price_is_held_against(preconf: Asker) -> None:
    overrides = {TO: {"code": returning("BASEFEE")}}
    call = {"to": TO, "from": RICH, "gas": "0x186a0", "gasPrice": "0x5"}
    low = preconf.ask("eth_call", call, "latest", overrides, {"baseFeePerGas": "0x5"})
    assert int(low, 16) == 5
    high = preconf.ask("eth_call", call, "latest", overrides, {"baseFee": "0x6"})
    assert "max fee per gas less than block base fee" in high["message"]


def test_forks_follow_the_overridden_time(preconf: Asker) -> None:
    """PUSH0 came with Shanghai at 390, CLZ with Osaka at 480."""
    assert ask(preconf, "PUSH0", {}, "0x27") == 0
    assert ask(preconf, "PUSH0", {"time": hex(389)}, "0x27") == error(
        -32000, "invalid opcode: PUSH0"
    )
    assert ask(preconf, [1, "CLZ"], {"time": hex(480)}, "0x27") == 255
    assert ask(preconf, [1, "CLZ"], {}, "0x27")["code"] == -32000


def test_hashes_end_at_the_real_block(preconf: Asker) -> None:
    assert ask(preconf, [54, "BLOCKHASH"], {"number": "0x40"}) == int(
        preconf.ask("eth_getBlockByNumber", "latest", False)["hash"], 16
    )
    assert ask(preconf, [55, "BLOCKHASH"], {"number": "0x40"}) == 0


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"beaconRoot": HASH}, "beaconRoot"),
        ({"parentBeaconBlockRoot": HASH}, "beaconRoot"),
        ({"withdrawals": []}, "withdrawals"),
    ],
)
def test_what_only_whole_blocks_have_is_refused(
    preconf: Asker, given: dict[str, Any], name: str
) -> None:
    why = f'block override "{name}" is not supported for this RPC method'
    assert ask(preconf, "NUMBER", given) == error(-32000, why)


BAD: list[tuple[object, str]] = [
    ([], "expected an object, found an array"),
    ({"number": 5}, "$.number: expected a string, found a number"),
    ({"number": "0x01"}, "$.number: hex number with leading zero digits"),
    ({"number": "0x1" + "0" * 16}, "$.number: hex number > 64 bits"),
    ({"time": "0x1" + "0" * 16}, "$.time: hex number > 64 bits"),
    ({"gasLimit": "0x1" + "0" * 16}, "$.gasLimit: hex number > 64 bits"),
    ({"baseFeePerGas": "0x1" + "0" * 16}, "$.baseFeePerGas: hex number > 64 bits"),
    ({"blobBaseFee": "0x1" + "0" * 32}, "$.blobBaseFee: hex number > 128 bits"),
    ({"feeRecipient": "0x12"}, "$.feeRecipient: hex string has length 2, want 40 for an address"),
    ({"prevRandao": "0x12"}, "$.prevRandao: hex string has length 2, want 64 for a hash"),
    ({"number": "0x1", "blockNumber": "0x2"},
     "number and blockNumber are two names of one field and differ"),
    ({"time": "0x1", "timestamp": "0x2"},
     "time and timestamp are two names of one field and differ"),
    ({"blockHash": {"5": HASH}}, "$.blockHash: hex string without 0x prefix"),
    ({"blockHash": {"0x5": "0x"}}, "$.blockHash.0x5: hex string has length 0, want 64 for a hash"),
]  # fmt: skip


@each_case(("given", "why"), BAD)
def test_bad_block_override(preconf: Asker, given: object, why: str) -> None:
    assert ask(preconf, "NUMBER", given) == error(-32602, f"invalid argument 3: {why}")
