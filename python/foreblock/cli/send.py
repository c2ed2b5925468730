"""`foreblock send`: sign a transaction, send it, and wait until it is pre-confirmed."""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from foreblock.cli.amounts import amount
from foreblock.cli.asking import URL_OPTION, checked, connected
from foreblock.cli.failure import stop
from foreblock.errors import InvalidArgument, NotAnAnswer
from foreblock.primitives import (
    HASH_BYTES,
    format_data,
    parse_address,
    parse_data,
    parse_quantity,
)
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from foreblock.types import Message, address_of, sign_transaction
from foreblock.upstream.client import Endpoint

DYNAMIC_FEE: Final = 2  # the type of a transaction with the fees of EIP-1559
BASE_FEES: Final = 2  # so many times the base fee may be paid, as wallets offer
POLL_SECONDS: Final = 0.02
MOST_ACCOUNTS: Final = 1_000

# Number, flashblock and hash of the pending block in the header that names the snapshot.
_PENDING: Final = re.compile(r"pending=0x[0-9a-f]+\.(\d+):(0x[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Sent:
    """A transaction that is in a block."""

    hash: str
    receipt: dict[str, Any]
    index: int | None  # of the flashblock, while its block is in progress
    milliseconds: int  # from the answer to the sending until the receipt


@click.command()
@click.option("--to", metavar="ADDRESS", help="Who is paid or called.")
@click.option("--create", is_flag=True, help="Create a contract from --data instead.")
@click.option("--value", metavar="AMOUNT", type=amount, default="0", help="Wei, or as in 0.5ether.")
@click.option("--data", metavar="HEX", default="0x", help="Call data, or a contract's init code.")
@click.option(
    "--account",
    metavar="INDEX",
    type=click.IntRange(0, MOST_ACCOUNTS),
    default=0,
    show_default=True,
    help="Which account of the mnemonic signs.",
)
@click.option(
    "--mnemonic",
    metavar="WORDS",
    default=TEST_MNEMONIC,
    envvar="FOREBLOCK_MNEMONIC",
    show_envvar=True,
    help="Words of the accounts, the well-known ones by default.",
)
@click.option(
    "--key",
    metavar="HEX",
    envvar="FOREBLOCK_KEY",
    show_envvar=True,
    help="A secret key to sign with instead.",
)
@click.option("--gas", metavar="N", type=click.IntRange(min=0), help="Gas; estimated by default.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    help="How long to wait for the receipt.",
)
@URL_OPTION
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
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
    """Sign a transaction with a development account, send it, and wait for its receipt."""
    if create == (to is not None):
        raise click.UsageError("give either --to or --create")
    with connected(url) as endpoint:
        secret = _secret(key, mnemonic, account)
        recipient = None if to is None else checked(parse_address, to, "address")
        raw = _signed(endpoint, recipient, value, checked(parse_data, data, "data"), gas, secret)
        sent = _send(endpoint, raw, timeout)
        if as_json:
            click.echo(json.dumps(_values(sent)))
        else:
            _print(url, sent)
    if _failed(sent):
        stop("the transaction failed", 1)


def _secret(key: str | None, mnemonic: str, account: int) -> bytes:
    if key is None:
        return dev_accounts(mnemonic, account + 1)[account].secret
    try:
        secret = parse_data(key)
    except ValueError:
        secret = b""
    if len(secret) != HASH_BYTES:
        raise InvalidArgument("--key: expected 0x and 64 hex digits")  # and not shown
    return secret


def _signed(
    endpoint: Endpoint, to: bytes | None, value: int, data: bytes, gas: int | None, secret: bytes
) -> bytes:
    """The transaction, with all that is not given asked of the endpoint, at `pending`."""
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


def _send(endpoint: Endpoint, raw: bytes, timeout: float) -> Sent:
    """Send it and ask for its receipt until there is one."""
    sent = endpoint.request("eth_sendRawTransaction", [format_data(raw)])
    begun = time.monotonic()
    while True:
        receipt = endpoint.request("eth_getTransactionReceipt", [sent])
        waited = time.monotonic() - begun
        if isinstance(receipt, dict):
            index = _flashblock(endpoint.headers, receipt.get("blockHash"))
            return Sent(str(sent), receipt, index, round(waited * 1000))
        if waited >= timeout:
            stop(f"{sent} was sent and is in no block after {timeout:g} s", 1)
        time.sleep(POLL_SECONDS)


def _flashblock(headers: Mapping[str, str], block_hash: object) -> int | None:
    """The flashblock after which the block stood as the receipt has it."""
    pending = _PENDING.search(headers.get("Foreblock-Snapshot", ""))
    return int(pending[1]) if pending is not None and pending[2] == block_hash else None


def _values(sent: Sent) -> dict[str, object]:
    return {
        "hash": sent.hash,
        "flashblock": sent.index,
        "milliseconds": sent.milliseconds,
        "receipt": sent.receipt,
    }


def _print(url: str, sent: Sent) -> None:
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


def _failed(sent: Sent) -> bool:
    return sent.receipt.get("status") == "0x0"
