"""Amounts on the command line, exact to the wei."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.cli.asking import ETHER_DIGITS, amount, decimal
from support.each_case import each_case


@each_case(
    ("text", "wei"),
    [
        ("0", 0),
        ("7", 7),
        ("7wei", 7),
        ("2gwei", 2 * 10**9),
        ("2 gwei", 2 * 10**9),
        ("1ether", 10**18),
        ("0.5ether", 5 * 10**17),
        ("1.000000000000000001ether", 10**18 + 1),
        ("1.50", None),
        ("1.0", 1),
        ("0.0000000001gwei", None),
        ("-1", None),
        ("1eth", None),
        ("ether", None),
        ("", None),
        ("1e18", None),
        ("٣", None),
    ],
)
def test_amounts(text: str, wei: int | None) -> None:
    if wei is None:
        with pytest.raises(click.BadParameter, match=r"invalid amount|whole number"):
            amount(text)
    else:
        assert amount(text) == wei


@given(st.integers(min_value=0, max_value=2**256 - 1))
def test_what_is_shown_in_ether_is_read_back(wei: int) -> None:
    assert amount(decimal(wei, ETHER_DIGITS) + "ether") == wei
