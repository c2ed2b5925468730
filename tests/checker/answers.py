"""Compares one result with the block that it must be about.

Each function returns the error of a result, or nothing. `Unjudged` is for requests whose responses
do not follow from the checker's data.
"""

from checker.chain import Chain
from checker.contradiction import Kind
from checker.header import encode_header, from_json
from checker.json_type import Json
from checker.messages import unhex
from checker.place import Place
from checker.probes import (
    BALANCE_OF_SELECTOR,
    PROBE,
    SURROUNDINGS_CODE,
    balance_of_code,
    simulation,
    surroundings_words,
)
from checker.rendering import difference, partial_block, sealed_block, seals_as
from checker.subject import Subject

Wrong = tuple[Kind, str]


class Unjudged(Exception):
    """A request without a known response."""


def judge_result(
    chain: Chain, method: str, params: list[Json], subject: Subject, place: Place, result: Json
) -> Wrong | None:
    """Return the error in the result of a request about this block."""
    match method:
        case "eth_getBlockByNumber" | "eth_getBlockByHash":
            return _judge_block(subject, place, result, full=params[1])
        case "eth_getBalance":
            return _judge_number("balance", place.state.get("balance", unhex(params[0])), result)
        case "eth_getTransactionCount":
            return _judge_nonce(chain, params, place, result)
        case "eth_call":
            return _judge_call(chain, params, place, result)
        case "eth_simulateV1":
            return _judge_simulation(chain, params, subject, place, result)
        case _:
            raise Unjudged(method)


def _judge_block(subject: Subject, place: Place, result: Json, *, full: bool) -> Wrong | None:
    if not isinstance(result, dict):
        return Kind.BLOCK, f"no block but {result!r}"
    if subject.sealed is None:
        expected = partial_block(place, full=full)
    else:
        root = unhex(str(result.get("stateRoot")))
        if seals_as(place, root) != subject.sealed.hash:
            return Kind.BLOCK, f"with the state root 0x{root.hex()} it has another hash"
        expected = sealed_block(subject.sealed, place, root, full=full)
    where = difference(expected, result)
    return (Kind.BLOCK, where) if where else None


def _judge_number(name: str, expected: int, result: Json, kind: Kind = Kind.STATE) -> Wrong | None:
    found = int(result, 16) if isinstance(result, str) and result.startswith("0x") else result
    return None if found == expected else (kind, f"{name} is {result}, expected {expected:#x}")


def _judge_nonce(chain: Chain, params: list[Json], place: Place, result: Json) -> Wrong | None:
    expected = place.state.get("nonce", unhex(params[0]))
    if params[1] == "pending" and chain.pending_nonce == "pool":
        # Transactions in the pool count too, and their number is unknown here.
        return None if int(result, 16) >= expected else (Kind.STATE, f"nonce is {result}")
    return _judge_number("nonce", expected, result)


def _judge_call(chain: Chain, params: list[Json], place: Place, result: Json) -> Wrong | None:
    call, overrides = params[0], params[2] if len(params) > 2 else {}
    code = overrides.get(PROBE, {}).get("code", "")
    if call["to"] == PROBE and code == SURROUNDINGS_CODE:
        return _judge_surroundings(place, unhex(result))
    owner = balance_of_code(code)
    if call["to"] == PROBE and owner is not None:
        return _judge_number("BALANCE", place.state.get("balance", owner), result)
    asked = unhex(call.get("data", "0x"))
    if unhex(call["to"]) == chain.token and asked[:4] == BALANCE_OF_SELECTOR:
        return _judge_number("token balance", place.state.get("token", asked[16:36]), result)
    raise Unjudged("a call of something else")


def _judge_surroundings(place: Place, returned: bytes) -> Wrong | None:
    for at, (name, expected) in enumerate(surroundings_words(place.header)):
        found = int.from_bytes(returned[32 * at : 32 * at + 32])
        if found != expected:
            return Kind.SURROUNDINGS, f"{name} is {found:#x}, expected {expected:#x}"
    return None


def _judge_simulation(
    chain: Chain, params: list[Json], subject: Subject, place: Place, result: Json
) -> Wrong | None:
    pays = params[0]["blockStateCalls"][0]["calls"][0]
    sender, to, value = unhex(pays["from"]), unhex(pays["to"]), int(pays["value"], 16)
    if params[0] != simulation(sender, to, value, params[1])[0]:
        raise Unjudged("a simulation of something else")
    block, (payment, told) = result[0], result[0]["calls"]
    expected = {
        "number": hex(place.number + 1),
        "parentHash": f"0x{subject.hash.hex()}",
        "timestamp": hex(place.number_in("timestamp") + chain.block_time),
    }
    where = difference(expected, {name: block.get(name) for name in expected})
    if where is None:
        where = difference({"status": "0x1", "gasUsed": "0x5208"},
                           {name: payment.get(name) for name in ("status", "gasUsed")},
                           "$.calls[0]")  # fmt: skip
    if where is not None:
        return Kind.SIMULATION, where
    balance = place.state.get("balance", to) + value
    return _judge_number("balance after the payment", balance, told["returnData"], Kind.SIMULATION)


def simulated_header(result: Json) -> tuple[bytes, bytes]:
    """The encoded header of a simulated block, and the hash in the block."""
    return encode_header(from_json(result[0])), unhex(result[0]["hash"])
