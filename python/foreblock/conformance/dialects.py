"""Expected replies of a dialect that differ from the published ones.

The published replies are those of the `ethereum` dialect. `preconf` differs in six rows of its
contract; each is one function here, from a request and the reply so far to the reply that
`preconf` promises. Nothing is masked: where hashes change, the new ones are computed.
docs/conformance.md has the same table for readers.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

from foreblock.primitives import ZERO_HASH, format_data, parse_data, parse_quantity
from foreblock.types import Header

# JSON as the standard library reads it. Published files are well-formed, and a mistaken
# one fails its case, so nothing is gained by spelling out every nesting here.
Json = Any

Dialect = Literal["ethereum", "preconf"]
DIALECTS: Final[tuple[Dialect, ...]] = ("ethereum", "preconf")

REVERTED: Final = 3  # code of a revert, as geth answers it
# The position of the block parameter in methods that require it.
BLOCK_PARAMETER: Final = {
    "eth_call": 1,
    "eth_getAccount": 1,
    "eth_getAccountInfo": 1,
    "eth_getBalance": 1,
    "eth_getCode": 1,
    "eth_getProof": 2,
    "eth_getStorageAt": 2,
    "eth_getStorageValues": 1,
    "eth_getTransactionCount": 1,
    "eth_simulateV1": 1,
}
# Methods whose error is the outcome of a call.
RUNNING: Final = ("eth_call", "eth_estimateGas")


def promised(dialect: Dialect, request: Json, reply: Json) -> Json:
    """The reply that the dialect promises, given the published one; batches item by item."""
    if dialect == "ethereum":
        return reply
    if isinstance(request, list) and isinstance(reply, list):
        return [_preconf(*pair) for pair in zip(request, reply, strict=True)]
    return _preconf(request, reply)


def _preconf(request: Json, reply: Json) -> Json:
    for difference in DIFFERENCES:
        reply = difference(request, reply)
    return reply


def call_needs_block(request: Json, reply: Json) -> Json:
    """A block parameter that is absent is an error instead of `latest`."""
    position = BLOCK_PARAMETER.get(request["method"])
    if position is None or _parameter(request, position) is not None:
        return reply
    return _invalid_params(reply)


def call_needs_to(request: Json, reply: Json) -> Json:
    """An eth_call without `to` is an error instead of a creation."""
    call = _parameter(request, 0)
    if request["method"] != "eth_call" or not isinstance(call, dict) or call.get("to") is not None:
        return reply
    return _invalid_params(reply)


def revert_of_call(request: Json, reply: Json) -> Json:
    """A revert has code -32000, a bare message, and data only if there is any."""
    error = reply.get("error", {})
    if request["method"] not in RUNNING or error.get("code") != REVERTED:
        return reply
    plain = {"code": -32000, "message": "execution reverted"}
    if error.get("data", "0x") != "0x":
        plain["data"] = error["data"]
    return {**reply, "error": plain}


def failed_simulated_call(request: Json, reply: Json) -> Json:
    """A failed simulated call has its message as `error` and its revert data as output."""
    if not _is_simulation(request, reply):
        return reply

    def rewrite(call: Json) -> Json:
        if "error" not in call:
            return call
        error = call["error"]
        output = error.get("data", call["returnData"])
        return {**call, "error": error["message"], "returnData": output}

    blocks = [
        {**block, "calls": [rewrite(call) for call in block["calls"]]} for block in reply["result"]
    ]
    return {**reply, "result": blocks}


def zero_state_root(request: Json, reply: Json) -> Json:
    """Simulated blocks have a zero state root, and so other hashes.

    A call may return a hash inside of other output, so hashes are replaced in the text of the whole
    result.
    """
    if not _is_simulation(request, reply):
        return reply
    blocks = [{**block, "stateRoot": format_data(ZERO_HASH)} for block in reply["result"]]
    text = json.dumps(blocks)
    for position in range(len(blocks)):
        block = json.loads(text)[position]
        text = text.replace(block["hash"][2:], hash_of(block).hex())
    return {**reply, "result": json.loads(text)}


def fillers_left_out(request: Json, reply: Json) -> Json:
    """Only the blocks that the request names are in the result."""
    if not _is_simulation(request, reply):
        return reply
    named = set(_simulated_numbers(request, reply["result"]))
    blocks = [block for block in reply["result"] if parse_quantity(block["number"]) in named]
    return {**reply, "result": blocks}


DIFFERENCES: Final[tuple[Callable[[Json, Json], Json], ...]] = (
    call_needs_block,
    call_needs_to,
    revert_of_call,
    failed_simulated_call,
    zero_state_root,
    fillers_left_out,
)


def _simulated_numbers(request: Json, blocks: Json) -> Iterator[int]:
    """The number of each entry: its own, or one more than that of the entry before it."""
    number = parse_quantity(blocks[0]["number"]) - 1 if blocks else 0
    for entry in _parameter(request, 0)["blockStateCalls"]:
        override = (entry.get("blockOverrides") or {}).get("number")
        number = number + 1 if override is None else parse_quantity(override)
        yield number


def _parameter(request: Json, position: int) -> Json:
    params = request.get("params") or []
    return params[position] if position < len(params) else None


def _is_simulation(request: Json, reply: Json) -> bool:
    return request["method"] == "eth_simulateV1" and isinstance(reply.get("result"), list)


def _invalid_params(reply: Json) -> Json:
    """A refusal whose message the contract leaves open."""
    return {"jsonrpc": reply["jsonrpc"], "id": reply["id"], "error": {"code": -32602}}


def hash_of(block: dict[str, str]) -> bytes:
    """The hash of a block, from the fields of its JSON object."""

    def data(name: str) -> bytes:
        return parse_data(block[name])

    def number(name: str) -> int:
        return parse_quantity(block[name])

    def data_from_its_fork(name: str) -> bytes | None:
        return data(name) if name in block else None

    def number_from_its_fork(name: str) -> int | None:
        return number(name) if name in block else None

    return Header(
        parent_hash=data("parentHash"),
        ommers_hash=data("sha3Uncles"),
        beneficiary=data("miner"),
        state_root=data("stateRoot"),
        transactions_root=data("transactionsRoot"),
        receipts_root=data("receiptsRoot"),
        logs_bloom=data("logsBloom"),
        difficulty=number("difficulty"),
        number=number("number"),
        gas_limit=number("gasLimit"),
        gas_used=number("gasUsed"),
        timestamp=number("timestamp"),
        extra_data=data("extraData"),
        mix_hash=data("mixHash"),
        nonce=data("nonce"),
        base_fee_per_gas=number_from_its_fork("baseFeePerGas"),
        withdrawals_root=data_from_its_fork("withdrawalsRoot"),
        blob_gas_used=number_from_its_fork("blobGasUsed"),
        excess_blob_gas=number_from_its_fork("excessBlobGas"),
        parent_beacon_block_root=data_from_its_fork("parentBeaconBlockRoot"),
        requests_hash=data_from_its_fork("requestsHash"),
    ).hash
