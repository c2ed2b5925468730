"""Payloads for eth_simulateV1, with the expected result of every call.

Overrides provide everything they need, so that any server can answer them: ether for a sender,
the code of a token, slots of a contract.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from foreblock.bench.fill import ETHER, TOKEN, TOKEN_ADDRESS
from foreblock.bench.rpc import chain
from foreblock.primitives import format_data, format_quantity

Json = Any
CallEnd = tuple[str, str, int]  # status, what was returned, how many logs

TOKEN_TRANSFERS: Final = 50
SLOTS: Final = 1000
BLOCKS, BLOCK_CALLS = 20, 10

PAYER: Final = b"\xaa" * 20  # has nothing but what an override gives it
DONE: Final[CallEnd] = ("0x1", "0x", 0)


@dataclass(frozen=True)
class Simulation:
    """The parameters of a request, and the end of each call, block by block."""

    params: Sequence[Json]
    ends: Sequence[Sequence[CallEnd]]


def one_transfer(position: int) -> Simulation:
    """A wei to one of the chain's accounts, from a sender that an override funds."""
    return _simulation([_block([_transfer(position)], _funded())], [[DONE]])


def token_transfers() -> Simulation:
    """Transfers of a token to as many accounts, in one block."""
    calls = [
        {
            "from": format_data(PAYER),
            "to": format_data(TOKEN_ADDRESS),
            "data": format_data(chain.ACCOUNTS[position].rjust(32, b"\0")),
        }
        for position in range(TOKEN_TRANSFERS)
    ]
    code = {format_data(TOKEN_ADDRESS): {"code": format_data(TOKEN)}}
    return _simulation([_block(calls, code)], [[("0x1", "0x", 1)] * TOKEN_TRANSFERS])


def many_slots() -> Simulation:
    """A call that reads one of many slots that are overridden."""
    words = [_word(number) for number in range(SLOTS + 1)]
    call = {"to": format_data(chain.READER_ADDRESS), "data": words[SLOTS - 1]}
    slots = dict(pairwise(words))
    accounts = {format_data(chain.READER_ADDRESS): {"stateDiff": slots}}
    return _simulation([_block([call], accounts)], [[("0x1", words[SLOTS], 0)]])


def many_blocks() -> Simulation:
    """Blocks of transfers, one after the other."""
    blocks = []
    for number in range(BLOCKS):
        first = number * BLOCK_CALLS
        calls = [_transfer(position) for position in range(first, first + BLOCK_CALLS)]
        blocks.append(_block(calls, {} if number else _funded()))
    return _simulation(blocks, [[DONE] * BLOCK_CALLS] * BLOCKS)


def ends(result: Json) -> list[list[CallEnd]] | None:
    """The end of each call in an answer; none if it is not one."""
    try:
        return [
            [(call["status"], call["returnData"], len(call["logs"])) for call in block["calls"]]
            for block in result
        ]
    except (KeyError, TypeError):
        return None


def _simulation(blocks: list[Json], expected: Sequence[Sequence[CallEnd]]) -> Simulation:
    return Simulation([{"blockStateCalls": blocks}, "latest"], expected)


def _block(calls: list[Json], accounts: Mapping[str, Json]) -> Json:
    return {"calls": calls, **({"stateOverrides": accounts} if accounts else {})}


def _transfer(position: int) -> Json:
    to = format_data(chain.ACCOUNTS[position])
    return {"from": format_data(PAYER), "to": to, "value": "0x1"}


def _funded() -> dict[str, Json]:
    return {format_data(PAYER): {"balance": format_quantity(ETHER)}}


def _word(number: int) -> str:
    return format_data(number.to_bytes(32, "big"))
