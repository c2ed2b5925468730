"""Every fork of both ladders: the engine executes the fork that Python names."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from foreblock._engine import (
    Block,
    Message,
    Overlay,
    Transaction,
    decode_transaction,
    sign_transaction,
)
from foreblock.errors import BadBlock, InvalidTransaction
from foreblock.ledger.rules.forks import ETHEREUM_RULES_OF, EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.profile import RulesEnd, diverged, rules_end, unknown_type
from foreblock.ledger.rules.transaction_rules import floor_gas, intrinsic_gas
from foreblock.ledger.rules.verification import MAXIMUM_BLOCK_SIZE, check_body
from support.chains.dev_chain import ACCOUNTS
from support.chains.profiles import JOVIAN, profile
from support.each_case import each_case
from support.executing import execute
from support.payloads.small_store import ALICE, BOB, env, message, with_code

ALL = [Rules(fork) for fork in EthereumFork] + [
    Rules(ETHEREUM_RULES_OF[fork], fork) for fork in OptimismFork
]
CAP = 2**24
CALLER = ACCOUNTS[0]
# A deposit from address 0 with 2^24 + 1 gas.
LARGE_DEPOSIT = decode_transaction(
    bytes.fromhex(
        "7ef854a0c3ecdc70c81521aae81240518d3547f601bb33ec07b909e83544b2fe093c78bd940000000000000000"
        "00000000000000000000000094f39fd6e51aad88f6f4ce6ab8827279cfffb92266808084010000018080"
    )
)  # fmt: skip


def runs(code: str) -> Callable[[str], bool]:
    return lambda rules: with_code(code).call(env(rules), message()).status == "success"


def gas_is(code: str, more: int) -> Callable[[str], bool]:
    """Return whether the code uses this much gas above the 21,000."""
    return lambda rules: with_code(code).call(env(rules), message()).gas_used == 21_000 + more


def data_has_a_floor(rules: str) -> bool:
    data = Message(sender=ALICE, to=BOB, gas=1_000_000, data=b"\x01" * 100)
    return with_code("").call(env(rules), data).gas_used == 21_000 + 40 * 100


# Code that proves a fork to be active in the engine, by fork. Forks without an effect visible to
# code are missing.
SIGNS: dict[EthereumFork, Callable[[str], bool]] = {
    EthereumFork.HOMESTEAD: runs("600060006000600060006000f4"),  # DELEGATECALL
    EthereumFork.TANGERINE: lambda rules: not gas_is("600031", 3 + 20)(rules),  # BALANCE
    EthereumFork.SPURIOUS_DRAGON: gas_is("600260020a", 6 + 10 + 50),  # EXP, one byte
    EthereumFork.BYZANTIUM: runs("3d"),  # RETURNDATASIZE
    EthereumFork.PETERSBURG: runs("600060001b"),  # SHL
    EthereumFork.ISTANBUL: runs("46"),  # CHAINID
    EthereumFork.BERLIN: gas_is("600031", 3 + 2_600),  # BALANCE of a cold account
    EthereumFork.LONDON: runs("48"),  # BASEFEE
    EthereumFork.SHANGHAI: runs("5f"),  # PUSH0
    EthereumFork.CANCUN: runs("6000600060005e"),  # MCOPY
    EthereumFork.PRAGUE: data_has_a_floor,
    EthereumFork.OSAKA: runs("60001e"),  # CLZ
}


@each_case("rules", ALL, ids=[each.engine_name for each in ALL])
def test_the_engine_runs_the_fork_that_python_names(rules: Rules) -> None:
    """Constantinople runs as Petersburg, from which it differs only briefly on any network."""
    fork = rules.ethereum
    if fork == EthereumFork.CONSTANTINOPLE:
        fork = EthereumFork.PETERSBURG
    shown = {sign: has(rules.engine_name) for sign, has in SIGNS.items()}
    assert shown == {sign: fork >= sign for sign in SIGNS}


@each_case("rules", ALL, ids=[each.engine_name for each in ALL])
def test_the_cap_of_gas_is_the_engines(rules: Rules) -> None:
    """EIP-7825; a block can hold every transaction that the pool accepts by `Rules`."""
    assert _is_executed(_legacy(CAP), rules)
    assert _is_executed(_legacy(CAP + 1), rules) == (rules.transaction_gas_cap is None)
    assert rules.transaction_gas_cap in (None, CAP)


@each_case("rules", ALL, ids=[each.engine_name for each in ALL])
def test_gas_before_the_first_opcode_is_the_engines(rules: Rules) -> None:
    data = bytes(50) + b"\x07" * 50
    for to in (BOB, None):
        needed = intrinsic_gas(
            data, creates=to is None, accessed=(0, 0), authorizations=0, rules=rules
        )
        least = max(needed, floor_gas(data, rules))
        assert _is_executed(_legacy(least, to=to, data=data), rules)
        assert not _is_executed(_legacy(least - 1, to=to, data=data), rules)


@pytest.mark.parametrize("fork", [OptimismFork.JOVIAN, OptimismFork.KARST])
def test_deposits_may_have_more_gas_than_the_cap(fork: OptimismFork) -> None:
    block = env(Rules(ETHEREUM_RULES_OF[fork], fork).engine_name)
    (executed,) = execute(Overlay.empty(), block, [LARGE_DEPOSIT])
    assert LARGE_DEPOSIT.gas_limit == CAP + 1
    assert executed.receipt.status


def test_blocks_of_ethereum_alone_have_a_limit_of_bytes() -> None:
    """EIP-7934 belongs to Osaka, and Karst omits it."""
    assert [each.engine_name for each in ALL if each.block_size_limited] == ["ethereum:Osaka"]
    too_long = cast(
        "Block", SimpleNamespace(header=SimpleNamespace(number=7), size=MAXIMUM_BLOCK_SIZE + 1)
    )
    with pytest.raises(BadBlock, match="block 7: size: expected at most 8388608"):
        check_body(too_long, Rules(EthereumFork.OSAKA))


def _legacy(gas: int, to: bytes | None = BOB, data: bytes = b"") -> Transaction:
    message = Message(sender=CALLER.address, to=to, gas=gas, data=data, gas_price=0)
    return sign_transaction(message, 0, 1, 0, CALLER.secret)


def _is_executed(transaction: Transaction, rules: Rules) -> bool:
    overlay = Overlay.empty()
    overlay.set(CALLER.address, balance=10**18)
    try:
        execute(overlay, env(rules.engine_name), [transaction])
    except InvalidTransaction:
        return False
    return True


LEGACY, FEES, DEPOSIT, UNKNOWN = b"\xc0", b"\x02\xc0", b"\x7e\xc0", b"\x7c\xc0"
POST_EXEC = b"\x7d\xc0"


@each_case(
    ("timestamp", "transactions", "unsupported", "why"),
    [
        (99, [LEGACY, FEES, DEPOSIT], {}, None),
        (99, [], {"interop": 100}, None),
        (100, [], {"interop": 100}, "fork interop"),
        (250, [], {"later": 200, "interop": 100}, "fork interop"),
        (99, [FEES, UNKNOWN, UNKNOWN], {"interop": 100}, "transaction 1 has the type 0x7c"),
        (100, [UNKNOWN], {"interop": 100}, "fork interop"),
        (49, [FEES, POST_EXEC], {}, "transaction 1 has the type 0x7d"),
        (50, [FEES, POST_EXEC], {}, None),
    ],
)
def test_block_ends_the_rules_it_is_known_to_end(
    timestamp: int, transactions: list[bytes], unsupported: dict[str, int], why: str | None
) -> None:
    expected = None if why is None else RulesEnd(7, why)
    chain = profile(JOVIAN, karstTime=40, lagoonTime=50)
    assert rules_end(7, timestamp, transactions, unsupported, chain) == expected


def test_types_are_those_that_can_be_decoded() -> None:
    known = {kind for kind in range(0xC0) if unknown_type(bytes([kind])) is None}
    assert known == {1, 2, 3, 4, 0x7D, 0x7E}
    assert unknown_type(b"") is None  # not a transaction at all: reported by decoding


def test_divergence_is_an_end() -> None:
    assert diverged(9, "gas used") == RulesEnd(9, "its execution differs: gas used")
