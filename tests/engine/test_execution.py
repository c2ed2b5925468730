"""Environments, messages, transactions and their outcomes, as seen from Python."""

import threading
import time

import pytest

from foreblock._engine import (
    Authorization,
    Env,
    Message,
    decode_transaction,
    keccak256,
)
from foreblock.errors import (
    DeadlineExceeded,
    InvalidArgument,
    InvalidMessage,
)
from support.each_case import each_case
from support.payloads.small_store import ALICE, BOB, CONTRACT, env, message, with_code, word

ETHEREUM = [
    "Frontier",
    "Homestead",
    "Tangerine",
    "SpuriousDragon",
    "Byzantium",
    "Constantinople",
    "Petersburg",
    "Istanbul",
    "Berlin",
    "London",
    "Paris",
    "Shanghai",
    "Cancun",
    "Prague",
    "Osaka",
]
OPTIMISM = [
    "Bedrock",
    "Regolith",
    "Canyon",
    "Ecotone",
    "Fjord",
    "Granite",
    "Holocene",
    "Isthmus",
    "Jovian",
    "Karst",
]
ALL_RULES = [f"ethereum:{fork}" for fork in ETHEREUM] + [f"optimism:{fork}" for fork in OPTIMISM]

ENDLESS = "5b600056"  # JUMPDEST, JUMP(0)
# --- Environments ----------------------------------------------------------------------


@each_case("rules", ALL_RULES)
def test_every_fork_runs_a_call(rules: str) -> None:
    outcome = with_code("602a60005260206000f3").call(env(rules), message())
    assert (outcome.status, outcome.output) == ("success", word(42))


@each_case(
    "rules",
    [
        "",
        ":",
        "ethereum",
        "ethereum:",
        "ethereum:prague",
        "Ethereum:Prague",
        "ethereum:Prague:",
        "ethereum:Jovian",
        "optimism:Prague",
        "optimism:Interop",
        "\ud800",
    ],
)
def test_unknown_rules_are_invalid(rules: str) -> None:
    with pytest.raises(InvalidArgument):
        env(rules)


def test_fork_asks_for_what_its_blocks_have() -> None:
    def make(rules: str, prevrandao: bytes | None, blob_base_fee: int | None) -> Env:
        return Env(
            rules=rules,
            chain_id=1,
            number=0,
            timestamp=0,
            coinbase=bytes(20),
            gas_limit=0,
            prevrandao=prevrandao,
            blob_base_fee=blob_base_fee,
        )

    make("ethereum:London", None, None)
    with pytest.raises(InvalidArgument, match="needs a prevrandao"):
        make("ethereum:Paris", None, None)
    with pytest.raises(InvalidArgument, match="needs a prevrandao"):
        make("optimism:Bedrock", None, None)
    with pytest.raises(InvalidArgument, match="needs a blob base fee"):
        make("ethereum:Cancun", bytes(32), None)
    make("ethereum:Shanghai", bytes(32), None)
    make("optimism:Karst", bytes(32), None)


@each_case(
    "fields",
    [
        {"chain_id": 2**64},
        {"number": -1},
        {"timestamp": 2**64},
        {"coinbase": bytes(19)},
        {"gas_limit": 2**64},
        {"base_fee": 2**64},
        {"difficulty": 2**256},
        {"prevrandao": bytes(31)},
        {"blob_base_fee": 2**128},
        {"max_blobs_per_transaction": -1},
    ],
)
def test_fields_of_a_block_have_bounds(fields: dict[str, object]) -> None:
    fine: dict[str, object] = {
        "rules": "ethereum:Prague",
        "chain_id": 2**64 - 1,
        "number": 2**64 - 1,
        "timestamp": 2**64 - 1,
        "coinbase": b"\xff" * 20,
        "gas_limit": 2**64 - 1,
        "base_fee": 2**64 - 1,
        "difficulty": 2**256 - 1,
        "prevrandao": b"\xff" * 32,
        "blob_base_fee": 2**128 - 1,
        "max_blobs_per_transaction": 2**64 - 1,
    }
    Env(**fine)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        Env(**fine | fields)  # type: ignore[arg-type]


def test_environment_is_what_the_code_sees() -> None:
    # NUMBER, CHAINID, COINBASE, BASEFEE, each a word of memory.
    code = "43600052" + "46602052" + "41604052" + "48606052" + "60806000f3"
    block = env(number=2**64 - 1, chain_id=77, base_fee=9)
    output = with_code(code).call(block, message(), check_base_fee=False).output
    assert output == word(2**64 - 1) + word(77) + bytes(12) + b"\xcb" * 20 + word(9)


# --- Messages and outcomes -------------------------------------------------------------


def test_revert_is_a_result_with_its_data() -> None:
    outcome = with_code("602a60005260206000fd").call(env(), message())
    assert (outcome.status, outcome.halt, outcome.output) == ("revert", None, word(42))
    assert outcome.logs == ()
    assert repr(outcome).startswith("Outcome(revert, gas_used=")


@each_case(
    ("code", "why"),
    [
        ("fe", "invalid opcode: INVALID"),
        ("0c", "invalid opcode: opcode 0xc not defined"),
        ("50", "stack underflow"),
        ("600156", "invalid jump destination"),
        (ENDLESS, "out of gas"),
        ("60ff60ff60ff3e", "return data out of bounds"),
    ],
)
def test_halt_says_why_in_the_words_of_other_clients(code: str, why: str) -> None:
    outcome = with_code(code).call(env(), message(gas=100_000))
    assert (outcome.status, outcome.halt, outcome.gas_used) == ("halt", why, 100_000)
    assert repr(outcome) == f"Outcome(halt: {why}, gas_used=100000)"


def test_gas_before_and_after_refunds() -> None:
    overlay = with_code("6000600055")  # clears slot 0
    overlay.set(CONTRACT, state_diff={0: 1})
    outcome = overlay.call(env(), message())
    assert outcome.max_gas_used - outcome.gas_used == 4800  # EIP-3529


def test_creation_gives_address_and_code() -> None:
    overlay = with_code("")
    # Copies the last byte of the data, STOP, to memory and returns it as code.
    create = Message(sender=ALICE, gas=1_000_000, data=bytes.fromhex("6001600c60003960016000f300"))
    outcome = overlay.run(env(), create)
    assert (outcome.status, outcome.output) == ("success", b"\x00")
    # keccak256(rlp([sender, nonce 0]))
    assert overlay.code(keccak256(b"\xd6\x94" + ALICE + b"\x80")[12:]) == b"\x00"


def test_message_that_cannot_be_paid_does_not_begin() -> None:
    overlay = with_code("")
    poor = Message(sender=BOB, to=CONTRACT, gas=21_000, value=1)
    with pytest.raises(InvalidMessage, match="lack of funds"):
        overlay.call(env(), poor)
    priced = Message(sender=BOB, to=CONTRACT, gas=21_000, gas_price=1)
    with pytest.raises(InvalidMessage, match="lack of funds"):
        overlay.run(env(), priced)
    with pytest.raises(InvalidMessage, match="lack of funds"):
        overlay.run(env("optimism:Isthmus"), priced)
    assert overlay.account(BOB) is None


@each_case(
    ("fields", "why"),
    [
        ({"gas": 20_999}, "call gas cost"),
        ({"gas": 0}, "call gas cost"),
        ({"nonce": 1}, "nonce 1 too high"),
        ({"gas_price": 6}, "gas price is less than basefee"),
        ({"max_fee_per_gas": 8, "max_priority_fee_per_gas": 9}, "priority fee"),
        ({"blob_hashes": [bytes(32)], "max_fee_per_blob_gas": 1, "gas_price": 7}, "blob"),
        ({"to": None, "blob_hashes": [b"\x01" * 32]}, "cannot create a contract"),
    ],
)
def test_message_that_no_block_could_run_is_invalid(fields: dict[str, object], why: str) -> None:
    fine: dict[str, object] = {"sender": ALICE, "to": CONTRACT, "gas": 30_000, "gas_price": 7}
    if "max_fee_per_gas" in fields:
        del fine["gas_price"]
    overlay, block = with_code(""), env(base_fee=7)
    with pytest.raises(InvalidMessage, match=why):
        overlay.call(block, Message(**fine | fields))  # type: ignore[arg-type]


def test_base_fee_check_is_switched_off_for_messages_without_price() -> None:
    overlay, block = with_code(""), env(base_fee=7)
    with pytest.raises(InvalidMessage, match="basefee"):
        overlay.call(block, message())
    assert overlay.call(block, message(), check_base_fee=False).status == "success"


def test_block_gas_limit_is_checked_on_demand() -> None:
    overlay, large = with_code(""), message(gas=30_000_001)
    assert overlay.call(env(), large).status == "success"
    assert overlay.run(env(), large, check_block_gas_limit=False).status == "success"
    with pytest.raises(InvalidMessage, match="gas limit"):
        overlay.call(env(), large, check_block_gas_limit=True)
    with pytest.raises(InvalidMessage, match="gas limit"):
        overlay.run(env(), large)


@each_case(
    ("fields", "why"),
    [
        ({"sender": bytes(21)}, "20 bytes, not 21"),
        ({"to": b""}, "20 bytes, not 0"),
        ({"gas": 2**64}, r"2\*\*64 - 1"),
        ({"gas": -1}, r"2\*\*64 - 1"),
        ({"value": 2**256}, r"2\*\*256 - 1"),
        ({"nonce": 2**64}, r"2\*\*64 - 1"),
        ({"gas_price": 2**128}, r"below 2\*\*128"),
        ({"max_fee_per_gas": 2**128}, r"below 2\*\*128"),
        ({"max_priority_fee_per_gas": 2**256}, r"2\*\*256 - 1"),
        ({"max_fee_per_blob_gas": 2**128}, r"below 2\*\*128"),
        ({"gas_price": 1, "max_fee_per_gas": 1}, "either gas_price or"),
        ({"access_list": [(ALICE, [bytes(31)])]}, "32 bytes, not 31"),
        ({"access_list": [(bytes(19), [])]}, "20 bytes, not 19"),
        ({"blob_hashes": [b""]}, "32 bytes, not 0"),
    ],
)
def test_fields_of_a_message_have_bounds(fields: dict[str, object], why: str) -> None:
    fine: dict[str, object] = {"sender": ALICE, "to": CONTRACT, "gas": 30_000}
    with pytest.raises(InvalidArgument, match=why):
        Message(**fine | fields)  # type: ignore[arg-type]


def test_all_fields_of_a_message_arrive() -> None:
    # Returns CALLER, CALLVALUE, GASPRICE and the first word of the data.
    overlay = with_code("33600052346020523a60405260003560605260806000f3")
    full = Message(
        sender=ALICE,
        to=CONTRACT,
        value=3,
        data=word(4),
        gas=100_000,
        nonce=0,
        max_fee_per_gas=9,
        max_priority_fee_per_gas=2,
        access_list=[(CONTRACT, [word(0)]), (BOB, [])],
    )
    outcome = overlay.call(env(base_fee=5), full)
    assert outcome.output == bytes(12) + ALICE + word(3) + word(7) + word(4)


def test_authorization_delegates_for_the_length_of_the_message() -> None:
    """EIP-7702: the code of the authority becomes a pointer to other code."""
    raw = bytes.fromhex(
        "04f8d3870c72dd9d5e883e81d30184056a921482b3b0940000000000000000000000000000000000000000"
        "8080c0f863f861870c72dd9d5e883e948c2319620d7c348bb4e2b2a0b230c81f310e95618080a0f17d5910"
        "2e9ebed035d1bd77bc668b170eb1d38edef6e7d971857d85781d68fea0193dbdc8dea2fc194da75febbd4d"
        "e9689b625eecd1e4ca30e27b45339af2257280a0333946e8b98c5b7eff15da75e7264e9e16728f06436e86"
        "611c82fd14eaee2256a03b268e5c9bb29a77f6976ae0f580f781ad765de3f9163b528ea9230ac02c996c"
    )
    (authorization,) = decode_transaction(raw).authorization_list or ()
    assert isinstance(authorization, Authorization)
    authority = bytes.fromhex("eda8645ba6948855e3b3cd596bbb07596d59c603")
    address = bytes.fromhex("8c2319620d7c348bb4e2b2a0b230c81f310e9561")
    overlay = with_code("")
    overlay.set(address, code=bytes.fromhex("602a60005260206000f3"))
    delegated = Message(sender=ALICE, to=authority, gas=100_000, authorization_list=[authorization])
    outcome = overlay.run(env(chain_id=0xC72DD9D5E883E), delegated)
    assert (outcome.status, outcome.output) == ("success", word(42))
    assert overlay.code(authority) == b"\xef\x01\x00" + address


# --- Absurd gas and deadlines ----------------------------------------------------------


@pytest.mark.parametrize("gas", [2**63 - 1, 2**63, 2**64 - 1])
def test_absurd_gas_is_just_much(gas: int) -> None:
    overlay = with_code("5a60005260206000f3")  # GAS
    outcome = overlay.call(env(), message(gas=gas))
    assert int.from_bytes(outcome.output) == gas - 21_000 - 2
    with pytest.raises(DeadlineExceeded):
        with_code(ENDLESS).call(env(), message(gas=gas), timeout_us=1000)
    # Memory up to 2**40 and 2**64 - 1: paid for with absurd gas, but not available.
    for memory in ("600065010000000000" + "52", "600067ffffffffffffffff" + "52"):
        assert with_code(memory).call(env(), message(gas=gas)).status == "halt"
    priced = Message(sender=ALICE, to=CONTRACT, gas=gas, gas_price=2**128 - 1)
    with pytest.raises(InvalidMessage):
        overlay.call(env(), priced)


@pytest.mark.parametrize("timeout_us", [0, 1, 1000])
def test_deadline_stops_an_endless_loop(timeout_us: int) -> None:
    overlay = with_code(ENDLESS)
    for run in (overlay.call, overlay.run):
        with pytest.raises(DeadlineExceeded):
            run(
                env(),
                message(gas=2**63),
                check_block_gas_limit=False,
                timeout_us=timeout_us,
            )
    after = overlay.account(ALICE)
    assert after is not None
    assert after.nonce == 0, "a run that was stopped has done nothing"


def test_deadline_far_away_is_none() -> None:
    outcome = with_code("").call(env(), message(), timeout_us=2**64 - 1)
    assert outcome.status == "success"


def test_other_threads_run_while_a_call_runs() -> None:
    """The interpreter lock is released; otherwise nothing could be counted meanwhile."""
    overlay, block, call = with_code(ENDLESS), env(), message(gas=2**63)
    during: list[float] = []
    started, ended = threading.Event(), threading.Event()

    def run() -> None:
        during.append(time.perf_counter())
        started.set()
        with pytest.raises(DeadlineExceeded):
            overlay.call(block, call, timeout_us=500_000)
        during.append(time.perf_counter())
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    seen = []
    while not ended.is_set():
        seen.append(time.perf_counter())
    thread.join()
    begin, end = during
    middle = [moment for moment in seen if 0.2 < (moment - begin) / (end - begin) < 0.8]
    assert middle
