"""Damaged responses: one kind of damage to one JSON-RPC response, and its description.

`Damage.strike` changes a response in place and describes the change, or does nothing if the kind
does not apply. All randomness comes from the given generator.
"""

import random
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

Json = Any  # a value of JSON, changed in place
REMEMBERED = 16  # responses of each method, for replays to other requests
HEADER_FIELDS = (
    "parentHash", "stateRoot", "receiptsRoot", "transactionsRoot", "logsBloom", "gasUsed",
    "baseFeePerGas", "timestamp", "mixHash", "withdrawalsRoot", "hash",
)  # fmt: skip
BLOCKS = ("eth_getBlockByHash", "eth_getBlockByNumber")
VALUES = (
    "eth_getBalance", "eth_getTransactionCount", "eth_getStorageAt", "eth_call",
    "eth_getStorageValues", "eth_getProof", "eth_getAccount",
)  # fmt: skip

PROOFS = ("eth_getProof",)
# The methods to which a kind applies; all if it is missing here.
STRUCK = {
    "flip-value": VALUES, "flip-code": ("eth_getCode",), "flip-header": BLOCKS,
    "flip-node": PROOFS, "empty-proof": PROOFS, "extra-nodes": PROOFS, "long-proof": PROOFS,
}  # fmt: skip


def flipped(text: str, pick: random.Random) -> str:
    """Hex with one bit flipped; a quantity stays valid."""
    digits = text[2:]
    if not digits:
        return "0x01"
    value, bits = int(digits, 16), 4 * len(digits)
    if len(digits) % 2 or (len(digits) < 64 and digits[0] != "0"):  # it may be a quantity
        return hex(value ^ (1 << pick.randrange(max(bits - 4, 1))))
    return f"0x{value ^ (1 << pick.randrange(bits)):0{len(digits)}x}"


class Damage:
    """Damages responses, and keeps some to replay them to other requests."""

    def __init__(self, pick: random.Random) -> None:
        self._pick = pick
        self._seen: dict[str, deque[tuple[Json, Json]]] = defaultdict(
            lambda: deque(maxlen=REMEMBERED)
        )

    def remember(self, request: Json, result: Json) -> None:
        """Keep a response that another request may get."""
        if result is not None:
            self._seen[request["method"]].append((request.get("params"), result))

    def strike(self, kind: str, amount: float, request: Json, answer: Json) -> str | None:
        """Damage one response; return the change, or None if not applicable."""
        if kind == "wrong-id":
            return self._id(answer)
        methods = STRUCK.get(kind)
        if answer.get("result") is None or (methods and request["method"] not in methods):
            return None
        ways: dict[str, Callable[[], str | None]] = {
            "null": lambda: self._null(answer),
            "another-key": lambda: self._another(request, answer),
            "flip-value": lambda: self._value(answer),
            "flip-code": lambda: self._flip(answer, "result"),
            "flip-header": lambda: self._header(answer["result"]),
        }
        way = ways.get(kind)
        return way() if way else self._proof(kind, int(amount), answer["result"])

    def _null(self, answer: Json) -> str:
        answer["result"] = None
        return "null"

    def _id(self, answer: Json) -> str:
        before = answer.get("id")
        answer["id"] = before + 1 if isinstance(before, int) else "another"
        return f"id {before} to {answer['id']}"

    def _header(self, block: Json) -> str | None:
        fields = [name for name in HEADER_FIELDS if block.get(name)]
        return self._flip(block, self._pick.choice(fields)) if fields else None

    def _flip(self, holder: Json, key: Any) -> str | None:  # noqa: ANN401, of a dict or a list
        before = holder[key]
        if before == "0x":
            return None
        holder[key] = flipped(before, self._pick)
        return f"{key}: {before[:70]} to {holder[key][:70]}"

    def _value(self, answer: Json) -> str | None:
        result = answer["result"]
        if isinstance(result, str):
            return self._flip(answer, "result")
        if "accountProof" in result or "codeHash" in result:
            places = [(result, key) for key in ("balance", "nonce", "codeHash", "storageHash")
                      if key in result]  # fmt: skip
            places += [(slot, "value") for slot in result.get("storageProof", ())]
            return self._flip(*self._pick.choice(places))
        rows = [row for row in result.values() if row]  # eth_getStorageValues
        if not rows:
            return None
        row = self._pick.choice(rows)
        return self._flip(row, self._pick.randrange(len(row)))

    def _proof(self, kind: str, amount: int, result: Json) -> str | None:
        slots = [slot["proof"] for slot in result["storageProof"] if slot["proof"]]
        proof = self._pick.choice([result["accountProof"], *slots])
        if not proof:
            return None
        match kind:
            case "flip-node":
                return self._flip(proof, self._pick.randrange(len(proof)))
            case "empty-proof":
                said = f"{len(proof)} nodes left out"
                proof.clear()
                return said
            case "extra-nodes":
                at = self._pick.randrange(len(proof) + 1)
                proof.insert(at, flipped(proof[0], self._pick))
                return f"a node at {at}"
            case _:  # long-proof
                proof.extend([proof[-1]] * max(amount - len(proof), 0))
                return f"{len(proof)} nodes"

    def _another(self, request: Json, answer: Json) -> str | None:
        mine = (request.get("params") or [])[:2]
        others = [
            (params, result)
            for params, result in self._seen[request["method"]]
            if (params or [])[:2] != mine and result != answer["result"]
        ]
        if not others:
            return None
        params, answer["result"] = self._pick.choice(others)
        return f"that of {str(params)[:100]}"


def damage_batch(kind: str, answers: list[Json], pick: random.Random) -> str | None:
    """Damage the order of a batch; return the change, or None if not applicable."""
    if len(answers) < 2:
        return None
    if kind == "missing-item":
        at = pick.randrange(len(answers))
        del answers[at]
        return f"no answer {at}"
    before = list(answers)
    while answers == before:
        pick.shuffle(answers)
    return f"{len(answers)} answers in another order"


def lie(lies: dict[tuple[str, int], int], request: Json, answer: Json) -> bool:
    """Replace the values of some slots, by address and slot; return whether any was present."""
    method, params, result = request.get("method"), request.get("params"), answer.get("result")
    if not result or method not in {"eth_getStorageAt", "eth_getStorageValues", "eth_getProof"}:
        return False
    if method == "eth_getStorageValues":
        places: list[tuple[Json, Any, tuple[str, int]]] = [
            (result[address], at, (address.lower(), int(slot, 16)))
            for address, slots in params[0].items()
            for at, slot in enumerate(slots)
        ]
    elif method == "eth_getStorageAt":
        places = [(answer, "result", (params[0].lower(), int(params[1], 16)))]
    else:
        shown = result["storageProof"]
        places = [(each, "value", (params[0].lower(), int(each["key"], 16))) for each in shown]
    told = [(holder, key, lies[place]) for holder, key, place in places if place in lies]
    for holder, key, value in told:
        holder[key] = hex(value) if method == "eth_getProof" else f"0x{value:064x}"
    return bool(told)
