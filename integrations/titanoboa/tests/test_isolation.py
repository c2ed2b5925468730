"""titanoboa's pytest plugin reverts tests and Hypothesis examples on foreblock."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boa
import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers

from foreblock_titanoboa import Env

BOB = "0x" + "b0" * 20


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[Env]:
    env = Env()
    with boa.set_env(env):
        yield env


@pytest.fixture(scope="module")
def bank(environment: Env) -> Any:  # noqa: ARG001, which must be set
    return boa.load(str(Path(__file__).with_name("Bank.vy")), 100)


@pytest.mark.parametrize("amount", [10, 20])
def test_each_test_begins_as_the_fixtures_left_it(bank: Any, amount: int) -> None:
    assert bank.pay(BOB, amount) == amount


@given(amount=integers(1, 100))
@settings(max_examples=20, deadline=None, derandomize=True, database=None)
def test_so_does_each_example(bank: Any, amount: int) -> None:
    assert bank.pay(BOB, amount) == amount
