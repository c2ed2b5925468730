"""Requests of the benchmark, and the limits of their cost relative to other servers.

A repeated question sends the same bytes each time, a distinct one goes through a thousand
addresses or slots (64 batches), so that a cache of answers cannot carry the result. Payloads of
eth_simulateV1 have the expected result of every call; overrides provide all that they need (ether
for a sender, the code of a token, slots of a contract), so any server can answer them.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from foreblock.bench.fill import ETHER, TOKEN, TOKEN_ADDRESS
from foreblock.bench.rpc import chain
from foreblock.primitives import format_data, format_quantity

# --- Simulations ---------------------------------------------------------------------------

Json = Any
CallEnd = tuple[str, str, int]  # status, returned data, number of logs

TOKEN_TRANSFERS: Final = 50
SLOTS: Final = 1000
BLOCKS, BLOCK_CALLS = 20, 10

PAYER: Final = b"\xaa" * 20  # funded by overrides only
DONE: Final[CallEnd] = ("0x1", "0x", 0)


@dataclass(frozen=True)
class Simulation:
    """The parameters of a request, and the end of each call, block by block."""

    params: Sequence[Json]
    ends: Sequence[Sequence[CallEnd]]


def one_transfer(position: int) -> Simulation:
    """A wei to one of the chain's accounts, from a sender that an override funds."""
    return _simulation([_simulated_block([_transfer(position)], _funded())], [[DONE]])


def token_transfers() -> Simulation:
    """Transfers of a token, each to another account, in one block."""
    calls = [
        {
            "from": format_data(PAYER),
            "to": format_data(TOKEN_ADDRESS),
            "data": format_data(chain.ACCOUNTS[position].rjust(32, b"\0")),
        }
        for position in range(TOKEN_TRANSFERS)
    ]
    code = {format_data(TOKEN_ADDRESS): {"code": format_data(TOKEN)}}
    return _simulation([_simulated_block(calls, code)], [[("0x1", "0x", 1)] * TOKEN_TRANSFERS])


def many_slots() -> Simulation:
    """A call that reads one of many slots that are overridden."""
    words = [_word(number) for number in range(SLOTS + 1)]
    call = {"to": format_data(chain.READER_ADDRESS), "data": words[SLOTS - 1]}
    slots = dict(pairwise(words))
    accounts = {format_data(chain.READER_ADDRESS): {"stateDiff": slots}}
    return _simulation([_simulated_block([call], accounts)], [[("0x1", words[SLOTS], 0)]])


def many_blocks() -> Simulation:
    """Blocks of transfers, one after the other."""
    blocks = []
    for number in range(BLOCKS):
        first = number * BLOCK_CALLS
        calls = [_transfer(position) for position in range(first, first + BLOCK_CALLS)]
        blocks.append(_simulated_block(calls, {} if number else _funded()))
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


def _simulated_block(calls: list[Json], accounts: Mapping[str, Json]) -> Json:
    return {"calls": calls, **({"stateOverrides": accounts} if accounts else {})}


def _transfer(position: int) -> Json:
    to = format_data(chain.ACCOUNTS[position])
    return {"from": format_data(PAYER), "to": to, "value": "0x1"}


def _funded() -> dict[str, Json]:
    return {format_data(PAYER): {"balance": format_quantity(ETHER)}}


def _word(number: int) -> str:
    return format_data(number.to_bytes(32, "big"))


# --- Questions -----------------------------------------------------------------------------

# Counts down from a thousand, and stores each number in memory:
# PUSH2 1000 JUMPDEST DUP1 PUSH0 MSTORE PUSH1 1 SWAP1 SUB DUP1 PUSH1 3 JUMPI STOP.
LOOP: Final = bytes.fromhex("6103e85b805f52600190038060035700")

BATCH: Final = 100
BATCHES: Final = 64


@dataclass(frozen=True)
class Bound:
    """Ours divided by theirs: what it must not exceed, and what it aims at."""

    must: float
    aim: float | None = None


@dataclass(frozen=True)
class Question:
    """Request bodies sent in turn, with the result that the first of them must have.

    `expected` is None where servers word the result differently; then it must have `holds`
    transactions, be simulated blocks whose calls ended as `ends` says, or have these `fields`;
    of a list its only item has them.
    """

    name: str
    bodies: tuple[bytes, ...]
    expected: object = None
    holds: int | None = None
    ends: Sequence[Sequence[CallEnd]] | None = None
    fields: Mapping[str, object] | None = None
    connections: int = 32
    bounds: dict[str, Bound] = field(default_factory=dict)

    @property
    def distinct(self) -> bool:
        """True if requests differ from each other."""
        return len(self.bodies) > 1


def questions() -> list[Question]:
    """All of them, in the order of the report."""
    order = random.Random(5).sample(range(len(chain.ACCOUNTS)), len(chain.ACCOUNTS))  # noqa: S311
    slots = random.Random(6).sample(range(chain.SLOTS), chain.SLOTS)  # noqa: S311
    batches = [random.Random(7 + at).sample(order, BATCH) for at in range(BATCHES)]  # noqa: S311
    balances, calls = [_balance(each) for each in order], [_call(each) for each in slots]
    packed = [_batch(each) for each in batches]
    first = _hex_balance(order[0])
    word = format_data(chain.value(slots[0]).to_bytes(32, "big"))
    in_batch = [_hex_balance(each) for each in batches[0]]
    small, call, batch = _bounds(0.5, 0.4, nginx=True), _bounds(0.4, 0.3), _bounds(0.5, 0.4)
    block = _bounds(0.45, 0.33, nginx=True)
    full = _bounds(0.01, None)
    return [
        Question("balance", _bytes(balances[:1]), first, bounds=small),
        Question("balance, distinct", _bytes(balances), first, bounds=small),
        Question("block, hashes", _bytes([_block("latest", full=False)]), holds=1, bounds=block),
        Question("block, 200 full transactions",
                 _bytes([_block(format_quantity(chain.FULL_BLOCK), full=True)]),
                 holds=chain.TRANSFERS, connections=8, bounds=full),
        Question("call, one storage read", _bytes(calls[:1]), word, bounds=call),
        Question("call, distinct", _bytes(calls), word, bounds=call),
        Question("batch of 100 balances", _bytes(packed[:1]), in_batch, connections=8,
                 bounds=batch),
        Question("batch, distinct", _bytes(packed), in_batch, connections=8, bounds=batch),
        *_simulations(order),
        *_history(),
    ]  # fmt: skip


def _history() -> list[Question]:
    """The questions about receipts, logs, proofs and traces."""
    transfers = chain.first_transactions()
    hashes = [format_data(each.hash) for each in transfers]
    receipts = [_request("eth_getTransactionReceipt", [each], 1) for each in hashes]
    calls, state = {"tracer": "callTracer"}, {"tracer": "prestateTracer"}
    trace = _request("debug_traceTransaction", [hashes[7], calls], 1)
    accounts = _request("debug_traceTransaction", [hashes[7], state], 1)
    reader, slot = format_data(chain.READER_ADDRESS), format_data((7).to_bytes(32, "big"))
    proof = _request("eth_getProof", [reader, [slot], "latest"], 1)
    read = _request("debug_traceCall", [{"to": reader, "data": slot}, "latest", calls], 1)
    code = {"stateOverrides": {reader: {"code": format_data(LOOP)}}}
    loop = _request("debug_traceCall", [{"to": reader}, "latest", calls | code], 1)
    word, to = format_data(chain.value(7).to_bytes(32, "big")), transfers[7].to
    assert to is not None
    received = {"balance": format_quantity(chain.balance(chain.ACCOUNTS.index(to)))}
    bounds = {"before": Bound(1.03), "anvil": Bound(1.0, 0.5), "geth": Bound(0.5, 0.2)}
    first = {"transactionHash": hashes[0], "gasUsed": "0x5208"}
    return [
        Question("receipt", _bytes(receipts[:1]), fields=first, bounds=bounds),
        Question("receipt, distinct", _bytes(receipts), fields=first, bounds=bounds),
        Question("logs, one of a hundred", _bytes([_logs(7)]), fields=_log(7), bounds=bounds),
        Question("proof of a slot", _bytes([proof]), fields={"address": reader}, bounds=bounds),
        Question("trace of calls", _bytes([trace]), fields={"type": "CALL", "gasUsed": "0x5208"},
                 bounds=bounds),
        Question("trace of state", _bytes([accounts]), fields={format_data(to): received},
                 bounds=bounds),
        Question("trace of a call", _bytes([read]), fields={"type": "CALL", "output": word},
                 bounds=bounds),
        Question("trace of a loop", _bytes([loop]), fields={"type": "CALL", "gasUsed": "0xd6de"},
                 bounds=bounds),
    ]  # fmt: skip


def _logs(number: int) -> dict[str, object]:
    blocks = {"fromBlock": "0x0", "toBlock": "latest"}
    filters = {"address": format_data(chain.EMITTER_ADDRESS), "topics": _log(number)["topics"]}
    return _request("eth_getLogs", [blocks | filters], 1)


def _log(number: int) -> dict[str, object]:
    word = number.to_bytes(32, "big")
    return {"topics": [format_data(chain.SIGNATURE), format_data(word)]}


def _simulations(order: Sequence[int]) -> list[Question]:
    """The questions about eth_simulateV1."""
    transfers = [one_transfer(position) for position in order]
    usual, long = _bounds(0.5, 0.4), _bounds(0.7, 0.5)
    return [
        _simulate("simulate, one transfer", transfers[:1], 32, usual),
        _simulate("simulate, distinct", transfers, 32, usual),
        _simulate("simulate, 50 token transfers", [token_transfers()], 32, usual),
        _simulate("simulate, 1,000 overridden slots", [many_slots()], 32, usual),
        _simulate("simulate, 20 blocks of 10 calls", [many_blocks()], 8, long),
    ]


def _simulate(
    name: str, asked: Sequence[Simulation], connections: int, bounds: dict[str, Bound]
) -> Question:
    bodies = _bytes([_request("eth_simulateV1", each.params, 1) for each in asked])
    return Question(name, bodies, ends=asked[0].ends, connections=connections, bounds=bounds)


def _bounds(must: float, aim: float | None, *, nginx: bool = False) -> dict[str, Bound]:
    bounds = {"before": Bound(1.03), "anvil": Bound(must, aim), "geth": Bound(0.2, 0.1)}
    return bounds | {"nginx": Bound(1.7, 1.4)} if nginx else bounds


def fits(question: Question, answer: object) -> bool:
    """Check the answer to the first request of a question."""
    if isinstance(answer, list):
        ordered = sorted(answer, key=lambda item: int(item["id"]))
        return [item.get("result") for item in ordered] == question.expected
    result = answer.get("result") if isinstance(answer, dict) else None
    if question.ends is not None:
        return ends(result) == question.ends
    if question.fields is not None:
        return _has(result, question.fields)
    if question.holds is None:
        return result == question.expected
    return isinstance(result, dict) and len(result["transactions"]) == question.holds


def _has(result: object, fields: Mapping[str, object]) -> bool:
    if isinstance(result, list) and len(result) == 1:
        (result,) = result
    return isinstance(result, dict) and all(result.get(name) == it for name, it in fields.items())


def _hex_balance(position: int) -> str:
    received = position >= len(chain.ACCOUNTS) - chain.TRANSFERS - 1  # a wei each in the blocks
    return format_quantity(chain.balance(position) + received)


def _balance(position: int, number: int = 1) -> dict[str, object]:
    params = [format_data(chain.ACCOUNTS[position]), "latest"]
    return _request("eth_getBalance", params, number)


def _call(slot: int) -> dict[str, object]:
    data = format_data(slot.to_bytes(32, "big"))
    message = {"to": format_data(chain.READER_ADDRESS), "data": data}
    return _request("eth_call", [message, "latest"], 1)


def _block(number: str, *, full: bool) -> dict[str, object]:
    return _request("eth_getBlockByNumber", [number, full], 1)


def _batch(positions: Sequence[int]) -> list[dict[str, object]]:
    return [_balance(position, number) for number, position in enumerate(positions, 1)]


def _request(method: str, params: Sequence[object], number: int) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": list(params)}


def _bytes(requests: Sequence[object]) -> tuple[bytes, ...]:
    return tuple(json.dumps(each, separators=(",", ":")).encode() for each in requests)
