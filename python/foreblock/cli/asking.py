"""What verbs that ask an endpoint share: options, asking, and how values are shown."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import click

from foreblock.cli.abi import revert_reason
from foreblock.cli.failure import failing_in_one_line
from foreblock.errors import ErrorAnswer, InvalidArgument
from foreblock.primitives import HASH_BYTES, parse_data, parse_quantity
from foreblock.upstream.client import DEFAULT_URL, Endpoint

Value = TypeVar("Value")

TAGS: Final = ("latest", "pending", "safe", "finalized", "earliest")
ETHER_DIGITS: Final = 18
GWEI_DIGITS: Final = 9

URL_OPTION = click.option(
    "--url",
    envvar="FOREBLOCK_URL",
    default=DEFAULT_URL,
    show_default=True,
    show_envvar=True,
    help="The endpoint to ask.",
)
JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print the result as it came.")


@contextmanager
def asking(url: str) -> Iterator[Callable[[str, Sequence[object]], Any]]:
    """A function that asks the endpoint; failures end the program in one line."""
    with connected(url) as endpoint:
        yield endpoint.request


@contextmanager
def connected(url: str) -> Iterator[Endpoint]:
    """The endpoint itself, failing in the same way."""
    with failing_in_one_line():
        try:
            with Endpoint(url) as endpoint:
                yield endpoint
        except ErrorAnswer as refused:
            raise _with_reason(refused) from refused


def _with_reason(refused: ErrorAnswer) -> ErrorAnswer:
    """The same refusal, saying what its revert data means if the server did not."""
    try:
        reason = revert_reason(parse_data(refused.data))
    except ValueError:
        return refused
    if reason is None or reason in refused.message:
        return refused
    return ErrorAnswer(refused.code, f"{refused.message}: {reason}", refused.data)


def block_parameter(text: str) -> str:
    """A block as an endpoint is asked for it."""
    if text in TAGS:
        return text
    if text.isascii() and text.isdecimal():
        return hex(int(text))
    if len(text) == 2 + 2 * HASH_BYTES:
        checked(parse_data, text, "block")
    else:
        checked(parse_quantity, text, "block")
    return text


def checked(parse: Callable[[object], Value], text: object, what: str) -> Value:
    """What a text of the command line means."""
    try:
        return parse(text)
    except ValueError as failure:
        raise InvalidArgument(f"{what} {text!r}: {failure}") from failure


def date(seconds: int) -> str:
    """A time for people."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "no date"


def decimal(number: int, digits: int) -> str:
    """`number` with the point moved `digits` to the left, nothing lost, no zeros at the end."""
    whole, rest = divmod(number, 10**digits)
    return f"{whole}.{rest:0{digits}}".rstrip("0").rstrip(".")
