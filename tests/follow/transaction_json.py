"""Raw transactions as JSON objects of nodes, without the project's renderer.

Only the sender comes from the engine: recovering it in plain Python takes too long.
"""

from typing import Any, cast

from foreblock._engine import decode_transaction
from support.payloads.merkle import Item, decode

DEPOSIT = 0x7E
SHARED = ("gas", "to", "value", "input")
SIGNATURE = ("yParity", "r", "s")
FEES = ("chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas")
FIELDS = {
    0: ("nonce", "gasPrice", *SHARED, "v", "r", "s"),
    1: ("chainId", "nonce", "gasPrice", *SHARED, "accessList", *SIGNATURE),
    2: (*FEES, *SHARED, "accessList", *SIGNATURE),
    3: (*FEES, *SHARED, "accessList", "maxFeePerBlobGas", "blobVersionedHashes", *SIGNATURE),
    4: (*FEES, *SHARED, "accessList", "authorizationList", *SIGNATURE),
    DEPOSIT: ("sourceHash", "from", "to", "mint", "value", "gas", "isSystemTx", "input"),
}
BYTES = {"input", "sourceHash", "from"}


def transaction_json(raw: bytes, hash: bytes, block: dict[str, Any], at: int) -> dict[str, Any]:
    """The object of a transaction in a block."""
    kind = raw[0] if raw[0] < 0xC0 else 0
    items = cast("list[Item]", decode(raw[1:] if kind else raw))
    shown: dict[str, Any] = {
        name: _member(name, item) for name, item in zip(FIELDS[kind], items, strict=True)
    }
    if kind == DEPOSIT:
        zero = dict.fromkeys(("nonce", "gasPrice", "v", "r", "s"), "0x0")
        shown = zero | shown | {"isSystemTx": shown["isSystemTx"] != "0x0"}
    else:
        shown["from"] = "0x" + decode_transaction(raw).sender.hex()
        shown["v"] = shown.get("v", shown.get("yParity"))
        if kind == 0 and int(shown["v"], 16) >= 35:
            shown["chainId"] = hex((int(shown["v"], 16) - 35) // 2)
    base_fee = int(block["baseFeePerGas"], 16)
    if "maxFeePerGas" in shown:
        tip = base_fee + int(shown["maxPriorityFeePerGas"], 16)
        shown["gasPrice"] = hex(min(int(shown["maxFeePerGas"], 16), tip))
    return shown | {
        "type": hex(kind), "hash": "0x" + hash.hex(), "blockHash": block["hash"],
        "blockNumber": block["number"], "transactionIndex": hex(at),
    }  # fmt: skip


def _member(name: str, item: Item) -> Any:  # noqa: ANN401, JSON
    if name == "accessList":
        return [
            {"address": _data(address), "storageKeys": [_data(key) for key in keys]}
            for address, keys in cast("list[list[Any]]", item)
        ]
    if name == "authorizationList":
        return [
            {"chainId": _number(each[0]), "address": _data(each[1]), "nonce": _number(each[2]),
             "yParity": _number(each[3]), "r": _number(each[4]), "s": _number(each[5])}
            for each in cast("list[list[Any]]", item)
        ]  # fmt: skip
    if name == "blobVersionedHashes":
        return [_data(each) for each in cast("list[bytes]", item)]
    value = cast("bytes", item)
    if name == "to":
        return _data(value) if value else None
    return _data(value) if name in BYTES else _number(value)


def _data(value: Item) -> str:
    return "0x" + cast("bytes", value).hex()


def _number(value: Item) -> str:
    return hex(int.from_bytes(cast("bytes", value)))
