"""Known pitfalls of engines, one test each (and the order of checks, and moved precompiles)."""

from typing import Any

from foreblock._engine import keccak256
from support.chains.long_chain import CHAIN_ID
from support.each_case import each_case
from support.payloads.bytecode import code, returning
from support.payloads.rlp import encode
from support.servers.asking import (
    A0,
    A1,
    A2,
    A3,
    ETHER,
    Asker,
    block,
    error,
    funded,
    simulate,
    word,
)

IDENTITY = "0x" + "00" * 19 + "04"
ELSEWHERE = "0x" + "00" * 17 + "123456"
BLOB_HASH = "0x01" + "00" * 31
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"


def only(blocks: Any) -> dict[str, Any]:  # noqa: ANN401, it is JSON
    """The result of the only call of the only block."""
    (found,) = blocks
    (call,) = found["calls"]
    assert isinstance(call, dict)
    return call


def call_gas(client: Asker, program: str, accounts: dict[str, Any]) -> int:
    found = only(simulate(client, block({"to": A1}, accounts=accounts | {A1: {"code": program}})))
    assert found["status"] == "0x1"
    return int(found["gasUsed"], 16)


def test_gas_of_a_transaction_is_not_capped(preconf: Asker) -> None:
    (found,) = simulate(preconf, block({"to": A1}), returnFullTransactions=True)
    assert found["transactions"][0]["gas"] == hex(50_000_000)  # EIP-7825 allows 2^24
    assert found["calls"][0]["status"] == "0x1"


def test_offered_fees_are_held_against_the_base_fee_without_validation(preconf: Asker) -> None:
    cheap = {"from": A0, "to": A1, "maxFeePerGas": "0x9"}
    found = simulate(preconf, block(cheap, accounts=funded(A0), baseFeePerGas="0xa"))
    assert found["code"] == -38012
    free = {"from": A0, "to": A1, "maxFeePerGas": "0x0"}
    (done,) = simulate(preconf, block(free, accounts=funded(A0), baseFeePerGas="0xa"))
    assert done["baseFeePerGas"] == "0xa"
    assert done["calls"][0]["status"] == "0x1"


def test_the_last_nonce_wraps_and_is_hashed_as_it_was(preconf: Asker) -> None:
    last = 2**64 - 1
    accounts = {A0: {"nonce": hex(last)}}
    call = {"from": A0, "to": A1, "gas": "0x5208"}
    (found,) = simulate(preconf, block(call, call, accounts=accounts), returnFullTransactions=True)
    first, second = found["transactions"]
    assert (first["nonce"], second["nonce"]) == (hex(last), "0x0")
    fields: list[bytes | int] = [CHAIN_ID, last, 0, 0, 21_000, bytes.fromhex(A1[2:]), 0, b""]
    encoded = encode([*map(encode, fields), encode([]), *map(encode, (0, 0, 0))])
    assert first["hash"] == "0x" + keccak256(b"\x02" + encoded).hex()


@each_case(
    ("call", "code_"),
    [
        ({"nonce": "0x5"}, -38011),  # before the fee, which is too low as well
        ({"nonce": "0x1"}, -38010),
        ({"maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"}, -32602),
        ({"maxFeePerGas": "0x1"}, -38012),
        ({"maxFeePerGas": "0xffffffffff", "gas": "0x1", "to": None, "data": "0x" + "00" * 49153},
         -38025),  # before the gas, which is insufficient
        ({"maxFeePerGas": "0xffffffffffff", "value": hex(ETHER), "gas": "0x1"}, -38014),
        ({"maxFeePerGas": "0xffffffff", "gas": "0x5207"}, -38013),
        ({"maxFeePerGas": "0xffffffff", "gas": "0x61a8", "data": "0x" + "01" * 101}, -32603),
        ({"maxFeePerGas": "0xffffffff", "gas": hex(10**9)}, -38015),  # before all others
    ],
)  # fmt: skip
def test_checks_come_in_their_order(preconf: Asker, call: dict[str, Any], code_: int) -> None:
    accounts = {A0: {"balance": hex(ETHER), "nonce": "0x3"}}
    asked = block({"from": A0, "to": A1} | call, accounts=accounts)
    assert simulate(preconf, asked, validation=True)["code"] == code_


def test_a_refused_call_refuses_all_calls(preconf: Asker) -> None:
    good, bad = {"to": A1}, {"from": A1, "to": A2, "value": "0x1"}
    found = simulate(preconf, block(good), block(good, bad))
    assert found == error(
        -38014,
        "err: insufficient funds for gas * price + value: address "
        "0xc100000000000000000000000000000000000000 have 0 want 1 (supplied gas 49958000)",
    )


def test_warm_addresses_do_not_move_with_precompiles(preconf: Asker) -> None:
    moved = {IDENTITY: {"movePrecompileToAddress": ELSEWHERE}}
    at_old = code(bytes.fromhex(IDENTITY[2:]), "BALANCE", "POP")
    at_new = code(bytes.fromhex(ELSEWHERE[2:]), "BALANCE", "POP")
    assert call_gas(preconf, at_old, moved) == call_gas(preconf, at_old, {})
    assert call_gas(preconf, at_new, moved) == call_gas(preconf, at_new, {})
    assert call_gas(preconf, at_new, {}) - call_gas(preconf, at_old, {}) == 2500


def test_gas_at_moved_and_vacated_precompiles(preconf: Asker) -> None:
    """Moved, its cost is unchanged; its old address is an account without code."""
    moved = {IDENTITY: {"movePrecompileToAddress": ELSEWHERE}}

    def gas(to: str, accounts: dict[str, Any]) -> int:
        called = code(0, 0, 32, 0, bytes.fromhex(to[2:]), "GAS", "STATICCALL", "POP")
        return call_gas(preconf, called, accounts)

    price = 15 + 3  # plus the price per word
    assert gas(IDENTITY, {}) - gas(IDENTITY, moved) == price
    assert gas(ELSEWHERE, moved) - gas(ELSEWHERE, {}) == price
    assert gas(ELSEWHERE, {}) - gas(IDENTITY, moved) == 2500  # cold, and warm


def test_moved_precompiles_answer_where_they_are(preconf: Asker) -> None:
    moved = {IDENTITY: {"movePrecompileToAddress": ELSEWHERE}}
    calls = [{"to": to, "data": "0x01020304"} for to in (IDENTITY, ELSEWHERE)]
    blocks = simulate(preconf, block(*calls), block(*calls, accounts=moved), block(*calls))
    outputs = [[call["returnData"] for call in found["calls"]] for found in blocks]
    assert outputs == [["0x01020304", "0x"], ["0x", "0x01020304"], ["0x01020304", "0x"]]


def test_code_laid_over_a_precompile_runs(preconf: Asker) -> None:
    accounts = {IDENTITY: {"code": returning(42)}}
    call = {"to": IDENTITY, "data": "0x01"}
    first, second = simulate(preconf, block(call, accounts=accounts), block(call))
    assert first["calls"][0]["returnData"] == word(42)
    assert second["calls"][0]["returnData"] == "0x01"  # precompiles are back, and hide the code


def test_self_destruction_to_itself_is_one_transfer(preconf: Asker) -> None:
    accounts = funded(A0) | {A1: {"code": code("ADDRESS") + "ff", "balance": "0x5"}}
    call = {"from": A0, "to": A1, "value": "0x3"}
    found = only(simulate(preconf, block(call, accounts=accounts), traceTransfers=True))
    shown = [(log["topics"][1:], log["data"], log["logIndex"]) for log in found["logs"]]
    a0, a1 = ("0x" + "00" * 12 + each[2:] for each in (A0, A1))
    assert shown == [([a0, a1], word(3), "0x0"), ([a1, a1], word(8), "0x1")]
    assert {log["topics"][0] for log in found["logs"]} == {TRANSFER}
    assert {log["address"] for log in found["logs"]} == {"0x" + "ee" * 20}


def test_traced_transfers_are_in_no_receipt(preconf: Asker) -> None:
    asked = block({"from": A0, "to": A1, "value": "0x3"}, accounts=funded(A0))
    (plain,) = simulate(preconf, asked)
    (traced,) = simulate(preconf, asked, traceTransfers=True)
    assert (plain["calls"][0]["logs"], len(traced["calls"][0]["logs"])) == ([], 1)
    assert plain["hash"] == traced["hash"]


def test_an_index_counts_logs_that_were_undone(preconf: Asker) -> None:
    logs = code(0, 0) + "a0"
    accounts = {A1: {"code": logs + code(0, 0, "REVERT")[2:]}, A2: {"code": logs}}
    (found,) = simulate(preconf, block({"to": A1}, {"to": A2}, accounts=accounts))
    undone, kept = found["calls"]
    assert undone["logs"] == []
    assert kept["logs"][0]["logIndex"] == "0x1"
    assert kept["logs"][0]["blockHash"] == found["hash"]


def test_blobs_cost_nothing_for_who_offers_nothing(preconf: Asker) -> None:
    call = {"from": A0, "to": A1, "blobVersionedHashes": [BLOB_HASH]}
    asked = block(call, accounts={A1: {"code": returning("BLOBBASEFEE")}}, blobBaseFee="0x7")
    found = simulate(preconf, asked)
    assert found[0]["blobGasUsed"] == "0x20000"
    assert only(found)["returnData"] == word(0)
    assert simulate(preconf, asked, validation=True)["code"] == -38012
    strict = block(call, accounts=asked["stateOverrides"], blobBaseFee="0x7", baseFeePerGas="0x0")
    found = simulate(preconf, strict, validation=True)
    assert found["code"] == -32603
    assert "max fee per blob gas less than block blob gas fee" in found["message"]


def test_wiped_storage_stays_wiped(preconf: Asker) -> None:
    """The slot was set in the first block, wiped in the second, and is read in the third."""
    read = returning(1, "SLOAD")
    first = block({"to": A1}, accounts={A1: {"code": code(9, 1, "SSTORE")}})
    second = block({"to": A1}, accounts={A1: {"state": {word(0): word(5)}, "code": read}})
    third = block({"to": A1}, {"to": A1, "from": A1, "value": "0x0"})
    blocks = simulate(preconf, first, second, third)
    outputs = [call["returnData"] for found in blocks[1:] for call in found["calls"]]
    assert outputs == [word(0)] * 3


def test_slots_of_an_account_without_anything_else_are_kept(preconf: Asker) -> None:
    """An override alone keeps it; a transaction that touches it clears it (EIP-161)."""
    slots = {A1: {"stateDiff": {word(1): word(7)}}}
    read = block({"to": A1}, accounts={A1: {"code": returning(1, "SLOAD")}})
    kept = simulate(preconf, block({"to": A2}, accounts=slots), read)
    assert kept[1]["calls"][0]["returnData"] == word(7)
    cleared = simulate(preconf, block({"to": A1}, accounts=slots), read)
    assert cleared[1]["calls"][0]["returnData"] == word(0)


def test_a_base_fee_beyond_a_header_is_refused(preconf: Asker) -> None:
    found = simulate(preconf, block(baseFeePerGas=hex(2**64)))
    place = "$.blockStateCalls[0].blockOverrides.baseFeePerGas"
    assert found == error(-32602, f"invalid argument 0: {place}: hex number > 64 bits")


def test_blockhash_knows_simulated_blocks(ethereum: Asker) -> None:
    accounts = {A1: {"code": returning(0, "CALLDATALOAD", "BLOCKHASH")}}
    asked = [{"to": A1, "data": word(number)} for number in (54, 55, 57, 58, 59)]
    blocks = simulate(ethereum, block(accounts=accounts), block(*asked, number="0x3a"))
    outputs = [call["returnData"] for call in blocks[-1]["calls"]]
    head = ethereum.ask("eth_getBlockByNumber", "0x36", False)["hash"]
    assert outputs == [head, blocks[0]["hash"], blocks[2]["hash"], word(0), word(0)]


def test_failures_have_the_texts_that_clients_know(preconf: Asker, ethereum: Asker) -> None:
    codes = {
        "invalid opcode: INVALID": code("INVALID"),
        "invalid jump destination": code(0, "JUMP"),
        "out of gas": code("JUMPDEST", 0, "JUMP"),
    }
    for text, program in codes.items():
        asked = block({"to": A2, "gas": "0x186a0"}, accounts={A2: {"code": program}})
        assert only(simulate(preconf, asked))["error"] == text
        assert only(simulate(ethereum, asked))["error"] == {"code": -32015, "message": text}


def test_randomness_is_zero_unless_given(preconf: Asker) -> None:
    accounts = {A1: {"code": returning("PREVRANDAO")}}
    given = block({"to": A1}, accounts=accounts, prevRandao=word(5))
    blocks = simulate(preconf, given, block({"to": A1}))
    assert [each["calls"][0]["returnData"] for each in blocks] == [word(5), word(0)]
    assert [each["mixHash"] for each in blocks] == [word(5), word(0)]


def test_withdrawals_are_paid_after_the_calls(preconf: Asker) -> None:
    accounts = {A1: {"code": returning(bytes.fromhex(A2[2:]), "BALANCE")}}
    withdrawal = {"index": "0x0", "validatorIndex": "0x1", "address": A2, "amount": "0x2"}
    paid = block({"to": A1}, accounts=accounts, withdrawals=[withdrawal])
    first, second = simulate(preconf, paid, block({"to": A1}))
    assert first["withdrawals"] == [withdrawal]
    assert first["withdrawalsRoot"] != second["withdrawalsRoot"]
    assert second["withdrawals"] == []
    outputs = [each["calls"][0]["returnData"] for each in (first, second)]
    assert outputs == [word(0), word(2 * 10**9)]


def test_set_code_makes_a_transaction_of_its_type(preconf: Asker) -> None:
    nobody = {"chainId": "0x0", "address": A2, "nonce": "0x0", "yParity": "0x0", "r": "0x1",
              "s": "0x1"}  # fmt: skip
    call = {"to": A1, "authorizationList": [nobody]}
    (found,) = simulate(preconf, block(call), returnFullTransactions=True)
    (transaction,) = found["transactions"]
    assert (transaction["type"], transaction["authorizationList"]) == ("0x4", [nobody])
    refused = simulate(preconf, block({"authorizationList": [nobody]}))
    assert refused["code"] == -32602


def test_a_legacy_call_pays_its_price(preconf: Asker) -> None:
    accounts = funded(A0) | {
        A1: {"code": returning("GASPRICE")},
        A2: {"code": returning("COINBASE", "BALANCE")},
        A3: {"code": returning(bytes.fromhex(A0[2:]), "BALANCE")},
    }
    asked = block(
        {"from": A0, "to": A1, "gasPrice": "0x9", "gas": "0x186a0"},
        {"from": A0, "to": A2},
        {"to": A3},
        accounts=accounts,
        baseFeePerGas="0x4",
        feeRecipient="0x" + "fe" * 20,
    )  # fmt: skip
    (found,) = simulate(preconf, asked, returnFullTransactions=True)
    priced, tipped, left = found["calls"]
    gas = int(priced["gasUsed"], 16)
    assert priced["returnData"] == word(9)
    assert tipped["returnData"] == word(5 * gas)
    assert left["returnData"] == word(ETHER - 9 * gas)
    legacy = found["transactions"][0]
    assert (legacy["type"], legacy["gasPrice"], legacy["v"], legacy["r"]) == (
        "0x0",
        "0x9",
        "0x0",
        "0x0",
    )
    assert "chainId" not in legacy


def test_arguments_are_named_by_their_place(preconf: Asker) -> None:
    found = simulate(preconf, block(), block({"to": A1}, {"to": "0x12"}))
    assert found["message"].startswith("invalid argument 0: $.blockStateCalls[1].calls[1].to: hex")
    found = simulate(preconf, block(accounts={A1: {"balance": "0x01"}}))
    place = f"$.blockStateCalls[0].stateOverrides.{A1}.balance"
    assert found["message"] == f"invalid argument 0: {place}: hex number with leading zero digits"
    found = simulate(preconf, block(withdrawals=[{"index": "0x0"}]))
    assert found["message"].startswith(
        "invalid argument 0: $.blockStateCalls[0].blockOverrides.withdrawals:"
    )


def test_precompiles_fail_in_the_words_that_clients_know(preconf: Asker) -> None:
    texts = {
        (9, "0x"): "invalid input length",
        (9, "0x" + "00" * 212 + "02"): "invalid final flag",
        (8, "0x00"): "bad elliptic curve pairing size",
        (10, "0x"): "invalid input length",
        (11, "0x"): "invalid input length",
        (5, "0x" + "ff" * 96): "out of gas",
    }
    for (which, data), text in texts.items():
        call = {"to": f"0x{which:040x}", "data": data, "gas": "0x30d40"}
        assert only(simulate(preconf, block(call)))["error"] == text


def test_blobs_of_a_legacy_call_run_and_do_not_count(preconf: Asker) -> None:
    """It is returned as a legacy transaction, which has no blobs; as in geth."""
    call = {"from": A0, "to": A1, "gasPrice": "0x0", "maxFeePerBlobGas": "0x1"}
    call |= {"blobVersionedHashes": [BLOB_HASH]}  # type: ignore[dict-item]
    accounts = funded(A0) | {A1: {"code": returning(0, "BLOBHASH")}}
    (found,) = simulate(preconf, block(call, accounts=accounts))
    assert found["calls"][0]["returnData"] == BLOB_HASH
    assert found["blobGasUsed"] == "0x0"
