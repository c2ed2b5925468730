"""`foreblock send`: sign a transaction, send it, and wait until it is pre-confirmed."""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from foreblock.cli.asking import AMOUNTS, URL_OPTION, amount, checked, checked_address, connected
from foreblock.cli.revert_errors import reason_of
from foreblock.cli.verb import in_section, json_option, option, stop, verb
from foreblock.errors import ErrorAnswer, InvalidArgument, NotAnAnswer
from foreblock.ledger.rules.transaction_rules import DYNAMIC_FEE
from foreblock.primitives import (
    HASH_BYTES,
    format_data,
    parse_data,
    parse_quantity,
)
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from foreblock.types import Message, address_of, sign_transaction
from foreblock.upstream.rpc_client import Endpoint

BASE_FEES: Final = 2  # the maximum fee as a multiple of the base fee, as in wallets
POLL_SECONDS: Final = 0.02
MOST_ACCOUNTS: Final = 1_000

# Number, flashblock and hash of the pending block in the header that names the snapshot.
_PENDING: Final = re.compile(r"pending=0x[0-9a-f]+\.(\d+):(0x[0-9a-f]{64})")


transaction, signer = in_section("Transaction"), in_section("Signer")


@dataclass(frozen=True, slots=True)
class SentTransaction:
    """A transaction in a block."""

    hash: str
    receipt: dict[str, Any]
    index: int | None  # of its flashblock, while the block is pending
    milliseconds: int  # from acceptance to the receipt


@verb(
    examples=[
        "foreblock send --to 0x00000000000000000000000000000000000000aa --value 1ether",
        "foreblock send --create --data 0x60006000f3 --account 1",
    ]
)
@transaction("--to", metavar="ADDRESS", help="Recipient of the transaction.")
@transaction("--create", is_flag=True, help="Create a contract, with --data as its init code.")
@transaction("--value", metavar="AMOUNT", type=amount, default="0",
             help=f"Value in wei, or with a unit: {AMOUNTS}.")  # fmt: skip
@transaction("--data", metavar="HEX", default="0x", help="Call data, or init code with --create.")
@transaction("--gas", metavar="GAS", type=click.IntRange(min=0),
             help="Gas limit; estimated by default.")  # fmt: skip
@signer("--account", metavar="INDEX", type=click.IntRange(0, MOST_ACCOUNTS), default=0,
        help="Account of the mnemonic that signs.")  # fmt: skip
@signer("--mnemonic", metavar="WORDS", default=TEST_MNEMONIC, envvar="FOREBLOCK_MNEMONIC",
        show_default="that of `foreblock dev`", show_envvar=True,
        help="Mnemonic of the accounts.")  # fmt: skip
@signer("--key", metavar="HEX", envvar="FOREBLOCK_KEY", show_envvar=True,
        help="Secret key to sign with, instead of an account.")  # fmt: skip
@option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0), default=10.0,
        help="How long to wait for the receipt.")  # fmt: skip
@URL_OPTION
@json_option()
def send(  # noqa: PLR0913, one per option
    *,
    to: str | None,
    create: bool,
    value: int,
    data: str,
    account: int,
    mnemonic: str,
    key: str | None,
    gas: int | None,
    timeout: float,
    url: str,
    as_json: bool,
) -> None:
    """Send a transaction and wait until it is pre-confirmed.

    Signs with a development account unless --key is given. Nonce, gas and fees come from the
    endpoint.
    """
    if create == (to is not None):
        raise click.UsageError("give either --to or --create")
    with connected(url) as endpoint:
        secret = _secret(key, mnemonic, account)
        recipient = None if to is None else checked_address(to)
        raw = _signed(endpoint, recipient, value, checked(parse_data, data, "data"), gas, secret)
        sent = _send(endpoint, raw, timeout)
        if as_json:
            click.echo(json.dumps(_values(sent)))
        else:
            _print(url, sent)
        if _failed(sent):
            stop(f"the transaction failed{_reason(endpoint, sent.hash)}", 1)


def _secret(key: str | None, mnemonic: str, account: int) -> bytes:
    if key is None:
        return dev_accounts(mnemonic, account + 1)[account].secret
    try:
        secret = parse_data(key)
    except ValueError:
        secret = b""
    if len(secret) != HASH_BYTES:
        raise InvalidArgument("--key: expected 0x and 64 hex digits")  # never printed
    return secret


def _signed(
    endpoint: Endpoint, to: bytes | None, value: int, data: bytes, gas: int | None, secret: bytes
) -> bytes:
    """Sign the transaction; missing values come from the endpoint, at `pending`."""
    sender = address_of(secret)
    call = {"from": format_data(sender), "value": hex(value), "data": format_data(data)}
    if to is not None:
        call["to"] = format_data(to)
    chain_id = _quantity(endpoint, "eth_chainId")
    nonce = _quantity(endpoint, "eth_getTransactionCount", call["from"], "pending")
    tip = _quantity(endpoint, "eth_maxPriorityFeePerGas")
    base_fee = _base_fee(endpoint)
    if gas is None:
        gas = _quantity(endpoint, "eth_estimateGas", call, "pending")
    message = Message(
        sender=sender,
        to=to,
        value=value,
        data=data,
        gas=gas,
        max_fee_per_gas=BASE_FEES * base_fee + tip,
        max_priority_fee_per_gas=tip,
    )
    return sign_transaction(message, DYNAMIC_FEE, chain_id, nonce, secret).raw


def _quantity(endpoint: Endpoint, method: str, *params: object) -> int:
    return _shown(endpoint.url, endpoint.request(method, params))


def _shown(url: str, found: object) -> int:
    try:
        return parse_quantity(found)
    except ValueError as failure:
        raise NotAnAnswer(url, f"{found!r}: {failure}") from failure


def _base_fee(endpoint: Endpoint) -> int:
    match endpoint.request("eth_getBlockByNumber", ["pending", False]):
        case {"baseFeePerGas": str(fee)}:
            return _shown(endpoint.url, fee)
        case _:
            raise NotAnAnswer(endpoint.url, "its pending block has no base fee")


def _send(endpoint: Endpoint, raw: bytes, timeout: float) -> SentTransaction:
    """Send the transaction and poll for its receipt."""
    sent = endpoint.request("eth_sendRawTransaction", [format_data(raw)])
    begun = time.monotonic()
    while True:
        receipt = endpoint.request("eth_getTransactionReceipt", [sent])
        waited = time.monotonic() - begun
        if isinstance(receipt, dict):
            index = _flashblock(endpoint.headers, receipt.get("blockHash"))
            return SentTransaction(str(sent), receipt, index, round(waited * 1000))
        if waited >= timeout:
            stop(f"{sent} was sent but not included within {timeout:g} s", 1)
        time.sleep(POLL_SECONDS)


def _flashblock(headers: Mapping[str, str], block_hash: object) -> int | None:
    """The index of the flashblock in which the receipt's block was the pending one."""
    pending = _PENDING.search(headers.get("Foreblock-Snapshot", ""))
    return int(pending[1]) if pending is not None and pending[2] == block_hash else None


def _reason(endpoint: Endpoint, hash: str) -> str:
    """Why a transaction failed, to follow a message; empty if the endpoint cannot trace it."""
    try:
        found = endpoint.request("debug_traceTransaction", [hash, {"tracer": "callTracer"}])
    except ErrorAnswer:
        return ""
    match found:
        case {"error": str(error), "output": str(output)}:
            return f": {reason_of(checked(parse_data, output, 'output')) or error}"
        case {"error": str(error)}:
            return f": {error}"
        case _:
            return ""


def _values(sent: SentTransaction) -> dict[str, object]:
    return {
        "hash": sent.hash,
        "flashblock": sent.index,
        "milliseconds": sent.milliseconds,
        "receipt": sent.receipt,
    }


def _print(url: str, sent: SentTransaction) -> None:
    receipt = sent.receipt
    number, gas = (_shown(url, receipt.get(name)) for name in ("blockNumber", "gasUsed"))
    failed = _failed(sent)
    stage = "sealed" if sent.index is None else "pre-confirmed"
    place = f"{number}" if sent.index is None else f"{number}.{sent.index}"
    rows = {
        "hash": sent.hash,
        "block": f"{place} ({stage} after {sent.milliseconds} ms)",
        "gas": f"{gas:,}",
        "status": "failed" if failed else "succeeded",
        "contract": None if failed else receipt.get("contractAddress"),
    }
    for name, value in rows.items():
        if value is not None:
            click.echo(f"{name:<10} {value}")


def _failed(sent: SentTransaction) -> bool:
    return sent.receipt.get("status") == "0x0"
