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
        ("1eth", 10**18),
        ("1Ether", 10**18),
        ("0.1 gwei", 10**8),
        ("1e18", 10**18),
        ("1.5e18", 15 * 10**17),
        ("1e30", 10**30),
        ("2e3gwei", 2 * 10**12),
        ("1_000_000", 10**6),
        ("115792089237316195423570985008687907853269984665640564039457584007913129639935",
         2**256 - 1),
        ("ether", None),
        ("", None),
        ("٣", None),
    ],
)  # fmt: skip
def test_amounts(text: str, wei: int | None) -> None:
    if wei is None:
        with pytest.raises(click.BadParameter, match=r"invalid amount|whole number|unknown unit"):
            amount(text)
    else:
        assert amount(text) == wei


@given(st.integers(min_value=0, max_value=2**256 - 1))
def test_what_is_shown_in_ether_is_read_back(wei: int) -> None:
    assert amount(decimal(wei, ETHER_DIGITS) + "ether") == wei


@each_case(
    ("text", "why"),
    [
        ("1eter", "'1eter': unknown unit 'eter'; use wei, gwei or ether"),
        ("1,5ether", "invalid amount '1,5ether'; use e.g. 7, 1e18, 7gwei or 0.5ether"),
        ("1.5", "'1.5' is not a whole number of wei"),
        ("1e78", "'1e78' is more than 2^256 - 1 wei"),
        ("2e60ether", "'2e60ether' is more than 2^256 - 1 wei"),
    ],
)
def test_what_is_no_amount_says_why(text: str, why: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        amount(text)
    assert refused.value.message == why
