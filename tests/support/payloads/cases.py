"""Conversations in the format of the public suite: comments, `>>` requests, `<<` replies."""

import json
from pathlib import Path
from typing import Any

METHODS = [
    "eth_getBlockByNumber",
    "eth_getBlockByHash",
    "eth_getBalance",
    "eth_call",
    "eth_getTransactionByHash",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionReceipt",
    "eth_getBlockReceipts",
    "eth_getLogs",
    "eth_getTransactionCount",
    "eth_getCode",
    "eth_getStorageAt",
    "eth_estimateGas",
    "eth_blobBaseFee",
    "eth_chainId",
    "eth_syncing",
    "net_version",
    "eth_config",
    "eth_getProof",
    "eth_getStorageValues",
    "debug_getRawHeader",
    "debug_getRawBlock",
    "debug_getRawReceipts",
]

# The position of the block parameter, which the published contract requires, in the parameters of
# methods.
BLOCK_AT = {
    "eth_getBalance": 1,
    "eth_call": 1,
    "eth_getTransactionCount": 1,
    "eth_getCode": 1,
    "eth_getStorageAt": 2,
    "eth_getStorageValues": 1,
    "eth_getProof": 2,
}


def read_case(path: Path) -> list[tuple[bytes, Any]]:
    """Requests with the expected replies."""
    lines = path.read_text("utf-8").splitlines()
    asked = [line[3:].encode() for line in lines if line.startswith(">> ")]
    answered = [json.loads(line[3:]) for line in lines if line.startswith("<< ")]
    return list(zip(asked, answered, strict=True))


def in_preconf(request: Any, reply: Any) -> Any:  # noqa: ANN401, it is JSON
    """Return the reply that the published contract requires, if it differs from other nodes'.

    Only for the differences listed in docs/behaviour.md: the form of a revert, and the required
    block.
    """
    method, params = request["method"], request.get("params", [])
    if len(params) <= BLOCK_AT.get(method, -1):
        message = f"missing value for required argument {BLOCK_AT[method]} (block)"
        return {"jsonrpc": "2.0", "id": reply["id"], "error": {"code": -32602, "message": message}}
    if reply.get("error", {}).get("code") == 3:
        error = {"code": -32000, "message": "execution reverted"}
        if reply["error"]["data"] != "0x":
            error["data"] = reply["error"]["data"]
        return {"jsonrpc": "2.0", "id": reply["id"], "error": error}
    return reply
