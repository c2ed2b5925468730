"""Amounts of ether as people write them: `7`, `7wei`, `2gwei`, `0.5ether`."""

import re
from typing import Final

import click

DIGITS: Final = {"": 0, "wei": 0, "gwei": 9, "ether": 18}  # of each unit behind the point of wei

_AMOUNT: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))? ?([a-z]*)")


def amount(text: str) -> int:
    """The amount in wei; nothing is rounded. Raises `click.BadParameter`."""
    found = _AMOUNT.fullmatch(text)
    if found is None or found[3] not in DIGITS:
        raise click.BadParameter(f"{text!r} is no amount; 7, 7gwei and 0.5ether are some")
    fraction, digits = (found[2] or "").rstrip("0"), DIGITS[found[3]]
    if len(fraction) > digits:
        raise click.BadParameter(f"{text!r} is no whole number of wei")
    return int(found[1] + fraction.ljust(digits, "0"))
