"""Errors of endpoints that lack features, in the words of real nodes."""

from typing import Any, NamedTuple

Json = Any

# The position of the block parameter.
BLOCK_AT = {
    "eth_getBalance": 1, "eth_getTransactionCount": 1, "eth_getCode": 1, "eth_getStorageAt": 2,
    "eth_getProof": 2, "eth_getStorageValues": 1, "eth_getAccount": 1, "eth_call": 1,
    "eth_estimateGas": 1, "eth_createAccessList": 1, "eth_simulateV1": 1, "debug_traceCall": 1,
}  # fmt: skip
BY_BLOCK = ("eth_getBlockByHash", "eth_getBlockByNumber", "eth_getBlockReceipts")
CALLS = ("eth_call", "eth_estimateGas", "eth_createAccessList", "debug_traceCall")
TAGS = ("latest", "pending", "safe", "finalized", "earliest")


WORDS = {
    "no-batches": (-32600, "batch requests are not supported"),
    "header-not-found": (-32000, "header not found"),
    "no-proofs": (-32601, "the method eth_getProof does not exist/is not available"),
    "tip-only-proofs": (-32000, "distance to target block exceeds maximum proof window"),
    "no-overrides": (-32602, "too many arguments, want at most 2"),
    "number-only": (-32602, "invalid argument 1: hex string without a number"),
    "hash-objects": (-32602, "invalid argument 1: hex number > 64 bits"),
}


class Tip(NamedTuple):
    """The latest block of the upstream."""

    number: int
    hash: str


def block_of(request: Json) -> Json:
    """The block parameter of a state request, or None."""
    at = BLOCK_AT.get(request.get("method", ""))
    params = request.get("params") or []
    return params[at] if at is not None and len(params) > at else None


def names_hash(block: Json) -> bool:
    """Return whether a block parameter is a hash, bare or in an object."""
    if isinstance(block, dict):
        return "blockHash" in block
    return isinstance(block, str) and len(block) == 66


def refusal(kind: str, request: Json, tip: Tip | None, *, in_batch: bool) -> Json:
    """The error object of such an endpoint, or None if it would respond normally."""
    method, block, params = (
        request.get("method", ""),
        block_of(request),
        request.get("params") or [],
    )
    by_block = params[:1] if method in BY_BLOCK else [] if block is None else [block]
    is_refused = {
        "no-batches": in_batch,
        "header-not-found": bool(by_block) and by_block[0] not in TAGS,
        "no-proofs": method == "eth_getProof",
        "tip-only-proofs": method == "eth_getProof" and not _is_tip(block, tip),
        "no-overrides": method in CALLS and len(params) > 2 and bool(params[2]),
        "number-only": isinstance(block, dict) or names_hash(block),
        "hash-objects": isinstance(block, str) and names_hash(block),
    }
    return error(*WORDS[kind]) if is_refused[kind] else None


def _is_tip(block: Json, tip: Tip | None) -> bool:
    if isinstance(block, dict):
        block = block.get("blockHash") or block.get("blockNumber", "")
    if block in {"latest", "pending"}:
        return True
    return tip is not None and block in {hex(tip.number), tip.hash}


def error(code: int, message: str) -> Json:
    return {"code": code, "message": message}
