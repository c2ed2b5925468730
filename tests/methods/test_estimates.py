"""Gas estimates, compared with a plain search that runs the call at every tried amount."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.ledger.rules.transaction_rules import created_address
from foreblock.sequencer.predeploys import TOKEN
from support.chains.dev_chain import ACCOUNTS, genesis_of
from support.chains.dev_service import dev_service
from support.chains.paying_chain import GWEI, PayingChain, client_of, paying_chain
from support.payloads.bytecode import LOOP, code
from support.payloads.dev_state import ALICE, BOB
from support.payloads.solidity import call_data
from support.servers.asking import Asker, error

TO = "0x00000000000000000000000000000000000c0de0"
WHO = "0x" + ALICE.hex()
PAYEE = "0x" + BOB.hex()

# Reverts unless it begins with this much gas.
NEEDS = 3_000_000
PICKY = code(NEEDS, "GAS", "LT", 10, "JUMPI", "STOP", "JUMPDEST", 0, 0, "REVERT")


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PayingChain]:
    with paying_chain(tmp_path_factory.mktemp("estimates") / "store") as found:
        yield found


@pytest.fixture(scope="module")
def client(chain: PayingChain) -> Iterator[Asker]:
    with client_of(chain, call_create=True) as found:
        yield found


def estimate(client: Asker, call: dict[str, Any], *more: object) -> int:
    return int(client.ask("eth_estimateGas", call, *more), 16)


def least(client: Asker, call: dict[str, Any], *more: object) -> int:
    """The lowest gas with which eth_call succeeds, found by bisection alone."""
    low, high = 20_999, 50_000_000
    while low + 1 < high:
        middle = (low + high) // 2
        answer = client.ask("eth_call", {**call, "gas": hex(middle)}, *more)
        low, high = (low, middle) if isinstance(answer, str) else (middle, high)
    return high


def close(needed: int) -> float:
    """The upper bound of an estimate: its final range is 1.5 %."""
    return needed / (1 - 0.015) + 1


def transfer(amount: int) -> str:
    return "0x" + call_data("transfer(address,uint256)", BOB, amount).hex()


def test_transfer_takes_what_a_transfer_takes(client: Asker) -> None:
    assert estimate(client, {"from": WHO, "to": PAYEE, "value": "0x1"}) == 21_000
    assert estimate(client, {"to": PAYEE}, "latest") == 21_000


def test_transfer_with_an_access_list_takes_more(client: Asker) -> None:
    listed = [{"address": TO, "storageKeys": ["0x" + "00" * 32]}]
    call = {"to": PAYEE, "accessList": listed}
    needed = 21_000 + 2_400 + 1_900
    assert needed <= estimate(client, call, "pending") <= close(needed)


@pytest.mark.parametrize(
    "call",
    [
        {"from": WHO, "to": "0x" + TOKEN.hex(), "data": transfer(5)},
        {"from": WHO, "data": "0x" + "00" * 500 + "5b"},
        {"to": PAYEE, "data": "0x" + "11" * 900},
        {"from": WHO, "to": "0x" + TOKEN.hex(), "data": transfer(5), "gasPrice": hex(GWEI)},
    ],
    ids=["token", "creation", "data only", "priced"],
)
def test_estimate_suffices_and_is_close(client: Asker, call: dict[str, Any]) -> None:
    gas, needed = estimate(client, call, "pending"), least(client, call, "pending")
    assert needed <= gas <= close(needed)


@given(
    st.lists(
        st.sampled_from(
            [
                (1, 1, "SSTORE"),
                (0, 1, "SSTORE"),  # refund for a cleared slot
                (0, 0, 0, 0, 0, 4, "GAS", "CALL", "POP"),
                (0, 0, 0, 0, 1, 0x35, "GAS", "CALL", "POP"),
                (1, 7, "SSTORE"),
                (0, 0, 0, "LOG1"),
            ]
        ),
        max_size=6,
    ),
    st.integers(0, 3),
)
def test_any_program_is_given_enough(
    client: Asker, parts: list[tuple[Any, ...]], slot: int
) -> None:
    program = code(*(each for part in parts for each in part), "STOP")
    words = {"0x" + f"{1:064x}": "0x" + f"{slot:064x}"}
    overrides = {TO: {"code": program, "state": words, "balance": "0x64"}}
    call = {"to": TO}
    gas = estimate(client, call, "pending", overrides)
    needed = least(client, call, "pending", overrides)
    assert needed <= gas <= close(needed)


def test_code_that_looks_at_its_gas_is_searched_for(client: Asker) -> None:
    overrides = {TO: {"code": PICKY}}
    gas = estimate(client, {"to": TO}, "pending", overrides)
    needed = least(client, {"to": TO}, "pending", overrides)
    assert NEEDS < needed <= gas <= close(needed)


def test_a_revert_is_told_as_by_a_call(chain: PayingChain, client: Asker) -> None:
    call = {"from": PAYEE, "to": "0x" + TOKEN.hex(), "data": transfer(2**200)}
    assert client.ask("eth_estimateGas", call) == client.ask("eth_call", call, "pending")
    assert client.ask("eth_estimateGas", call)["message"] == "execution reverted"
    with client_of(chain, dialect="ethereum") as other:
        assert other.ask("eth_estimateGas", call) == other.ask("eth_call", call, "pending")
        assert other.ask("eth_estimateGas", call)["code"] == 3


def test_other_failures_are_told_too(client: Asker) -> None:
    def failing(program: str, **call: str) -> Any:  # noqa: ANN401, it is JSON
        return client.ask("eth_estimateGas", {"to": TO, **call}, "pending", {TO: {"code": program}})

    assert failing(code("INVALID")) == error(-32000, "invalid opcode: INVALID")
    assert failing(code("ADD"))["message"].startswith("stack underflow")
    limit = error(-32000, "gas required exceeds allowance (30000)")
    assert failing(code(1, 1, "SSTORE"), gas=hex(30_000)) == limit
    assert failing(LOOP) == error(-32000, "gas required exceeds allowance (50000000)")


def test_sender_pays_for_what_it_may_use(client: Asker) -> None:
    """With a price the balance limits the gas, without one it does not."""
    poor = "0x" + "77" * 20
    call = {"from": poor, "to": TO}
    overrides = {
        poor: {"balance": hex(30_000 * GWEI)},
        TO: {"code": code(1, 1, "SSTORE")},
    }
    assert estimate(client, call, "pending", overrides) > 40_000
    priced = {**call, "maxFeePerGas": hex(GWEI)}
    refused = error(-32000, "gas required exceeds allowance (30000)")
    assert client.ask("eth_estimateGas", priced, "pending", overrides) == refused
    overrides[poor] = {"balance": hex(60_000 * GWEI)}
    assert estimate(client, priced, "pending", overrides) > 40_000
    answer = client.ask("eth_estimateGas", {**priced, "value": hex(10**18)}, "pending", overrides)
    assert answer == error(-32000, "insufficient funds for transfer")
    answer = client.ask("eth_estimateGas", {**call, "value": hex(10**18)}, "pending", overrides)
    assert answer["message"].startswith(
        "failed with 50000000 gas: insufficient funds for gas * price + value: address 0x7777"
    )


def test_fee_below_the_base_fee_is_refused(client: Asker) -> None:
    answer = client.ask("eth_estimateGas", {"from": WHO, "to": PAYEE, "maxFeePerGas": "0x1"})
    assert "max fee per gas less than block base fee" in answer["message"]


def test_block_overrides_count(client: Asker) -> None:
    """Code that is expensive only in one block."""
    dear = code("NUMBER", 100, "EQ", 8, "JUMPI", "STOP", "JUMPDEST", 1, 1, "SSTORE")
    overrides = {TO: {"code": dear}}
    cheap = estimate(client, {"to": TO}, "pending", overrides)
    assert estimate(client, {"to": TO}, "pending", overrides, {"number": "0x64"}) > cheap + 20_000


def test_without_a_block_what_was_preconfirmed_counts(tmp_path: Path) -> None:
    """Otherwise a recently deployed contract would be treated as an empty account."""
    with paying_chain(tmp_path / "store") as chain, client_of(chain) as client:
        writes = bytes.fromhex(code(1, 1, "SSTORE")[2:])
        makes = bytes([0x60, len(writes), 0x60, 12, 0x5F, 0x39, 0x60, len(writes), 0x5F, 0xF3])
        chain.extend(chain.signed(None, 0, makes + b"\0\0" + writes))
        made = "0x" + created_address(ALICE, 0).hex()
        assert client.ask("eth_getCode", made, "pending") == "0x" + writes.hex()
        assert estimate(client, {"to": made}) == estimate(client, {"to": made}, "pending") > 40_000
        assert estimate(client, {"to": made}, "latest") == 21_000


def test_long_estimate_ends_at_its_deadline(chain: PayingChain) -> None:
    """Other requests are answered while it runs on a thread."""
    with client_of(chain, call_timeout=0.15, call_gas_cap=0) as client:
        call: list[object] = [{"to": TO, "gas": hex(2**62)}, "pending", {TO: {"code": LOOP}}]
        answer = client.ask("eth_estimateGas", *call)
    assert answer == error(-32000, "execution aborted (timeout = 150ms)")


def test_arguments_are_read_as_those_of_a_call(client: Asker) -> None:
    assert client.ask("eth_estimateGas") == error(
        -32602, "missing value for required argument 0 (transaction)"
    )
    assert client.ask("eth_estimateGas", {"to": "0x1"})["code"] == -32602
    unknown = client.ask("eth_estimateGas", {"to": PAYEE}, "0xffff")
    assert unknown == error(-32000, "header not found")
    fees = {"to": PAYEE, "gasPrice": "0x1", "maxFeePerGas": "0x1"}
    assert client.ask("eth_estimateGas", fees)["message"].startswith("both gasPrice and")
    other = client.ask("eth_estimateGas", {"to": PAYEE, "chainId": "0x1"})
    assert other["message"] == "chainId does not match node's (have=1, want=31337)"


# --- On a development chain at /eth -------------------------------------------------------


@pytest.mark.parametrize("mining", ["automine", "manual", "clock"])
def test_where_no_clock_seals_the_next_block_is_estimated_in(tmp_path: Path, mining: str) -> None:
    """Its base fee falls while nothing is sent, and tools offer exactly that; anvil accepts it."""
    genesis = genesis_of("ethereum")
    with dev_service(tmp_path, genesis=genesis, mining=mining) as (_, client):
        client.ask("anvil_mine", "0x3")
        latest, next_fee = client.ask("eth_feeHistory", "0x1", "latest", [])["baseFeePerGas"]
        assert int(next_fee, 16) < int(latest, 16)
        call = {"from": "0x" + ACCOUNTS[0].address.hex(), "to": TO, "maxFeePerGas": next_fee}
        refused = client.ask("eth_estimateGas", call, "0x3")
        assert "max fee per gas less than block base fee" in refused["message"]
        assert client.ask("eth_estimateGas", call, "pending") == "0x5208"
        # Like anvil 1.7.1 except for the errors, which are geth's.
        assert client.ask("eth_estimateGas", call) == (refused if mining == "clock" else "0x5208")
        latest = client.ask("eth_estimateGas", call, "latest")
        assert latest == ("0x5208" if mining == "automine" else refused)
