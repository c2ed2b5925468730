"""Transactions that the pool rejects before it reads an account, with geth's messages."""

import pytest

from foreblock._engine import (
    Authorization,
    Message,
    Transaction,
    decode_transaction,
    deposit_transaction,
    sign_transaction,
)
from foreblock.errors import PoolRefusal
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.l1 import L1Fees
from foreblock.ledger.rules.transaction_rules import MAX_INIT_CODE
from foreblock.sequencer.admission import MAX_NONCE, MAX_SIZE, admit
from support.chains.sequencing import (
    CHAIN_ID,
    GWEI,
    NOBODY,
    SECRETS,
    SENDERS,
    TERMS,
    terms,
    transfer,
)
from support.each_case import each_case
from support.payloads.signing import Item, rlp


def legacy(price: int, chain_id: int = CHAIN_ID) -> Transaction:
    message = Message(sender=SENDERS[0], to=NOBODY, gas=21_000, gas_price=price)
    return sign_transaction(message, 0, chain_id, 0, SECRETS[0])


def set_code(authorizations: list[Authorization], gas: int) -> Transaction:
    message = Message(
        sender=SENDERS[0],
        to=NOBODY,
        gas=gas,
        max_fee_per_gas=2 * GWEI,
        max_priority_fee_per_gas=1,
        authorization_list=authorizations,
    )
    return sign_transaction(message, 4, CHAIN_ID, 0, SECRETS[0])


def deposit() -> Transaction:
    return deposit_transaction(
        source_hash=bytes(32),
        sender=NOBODY,
        to=NOBODY,
        mint=0,
        value=0,
        gas_limit=21_000,
        input=b"",
    )


def blob() -> Transaction:
    fields: list[Item] = [
        CHAIN_ID, 0, 1, 10 * GWEI, 21_000, NOBODY, 0, b"", [], 1, [b"\x01" * 32], 0, 1, 1,
    ]  # fmt: skip
    return decode_transaction(b"\x03" + rlp(fields))


REFUSED = [
    (blob(), "transaction type not supported: tx type 3 not supported by this pool"),
    (deposit(), "transaction type not supported: tx type 126 not supported by this pool"),
    (
        transfer(0, 0, data=bytes(MAX_SIZE), gas=29_000_000),
        f"oversized data: transaction size {MAX_SIZE + 119}, limit 131072",
    ),
    (
        transfer(0, 0, to=None, data=b"\1" * (MAX_INIT_CODE + 1), gas=29_000_000),
        "max initcode size exceeded: code size 49153 limit 49152",
    ),
    (transfer(0, 0, gas=30_000_001), "exceeds block gas limit"),
    (transfer(0, 0, tip=3, cap=2), "max priority fee per gas higher than max fee per gas"),
    (
        transfer(0, 0, chain_id=1),
        "invalid sender: invalid chain id for signer: have 1 want 31337",
    ),
    (
        legacy(GWEI, chain_id=10),
        "invalid sender: invalid chain id for signer: have 10 want 31337",
    ),
    (transfer(0, MAX_NONCE), "nonce has max value"),
    (transfer(0, 0, gas=20_999), "intrinsic gas too low: gas 20999, minimum needed 21000"),
    (
        transfer(0, 0, to=None, data=b"\1", gas=53_000),
        "intrinsic gas too low: gas 53000, minimum needed 53018",
    ),
    (
        transfer(0, 0, data=b"\1" * 100, gas=24_999),
        "insufficient gas for floor data gas cost: gas 24999, minimum needed 25000",
    ),
    (set_code([], 21_000), "set code tx must have at least one authorization tuple"),
    (
        set_code([Authorization(0, NOBODY, 0, 0, 1, 1)], 45_999),
        "intrinsic gas too low: gas 45999, minimum needed 46000",
    ),
    (
        transfer(0, 0, tip=0, cap=GWEI // 2 - 1),
        "max fee per gas less than block base fee: maxFeePerGas: 499999999, "
        "minimum base fee of this chain: 500000000",
    ),
]


@each_case(("transaction", "text"), REFUSED, ids=[text[:40] for _, text in REFUSED])
def test_refusals_have_the_texts_of_geth(transaction: Transaction, text: str) -> None:
    with pytest.raises(PoolRefusal) as refusal:
        admit(transaction, TERMS, 0)
    assert str(refusal.value) == text


def test_gas_of_one_transaction_is_capped_where_the_fork_has_it() -> None:
    """EIP-7825."""
    karst = Rules(EthereumFork.OSAKA, OptimismFork.KARST)
    osaka = terms(rules=karst, transaction_gas_cap=karst.transaction_gas_cap)
    admit(transfer(0, 0, gas=2**24), osaka, 0)
    with pytest.raises(PoolRefusal, match=r"^transaction gas limit too high \(cap: 16777216, tx: "):
        admit(transfer(0, 0, gas=2**24 + 1), osaka, 0)
    admit(transfer(0, 0, gas=2**24 + 1), TERMS, 0)


@each_case(
    "transaction",
    [
        transfer(0, 0, gas=30_000_000),
        transfer(0, MAX_NONCE - 1),
        transfer(0, 0, to=None, data=b"\1" * MAX_INIT_CODE, gas=29_000_000),
        transfer(0, 0, tip=0, cap=GWEI // 2),
        transfer(0, 0, data=b"\1" * 100, gas=25_000),
        legacy(GWEI),
        set_code([Authorization(0, NOBODY, 0, 0, 1, 1)], 46_000),
    ],
)
def test_what_is_just_allowed_is_taken(transaction: Transaction) -> None:
    assert admit(transaction, TERMS, 7).hash == transaction.hash


def test_a_legacy_transaction_without_a_chain_is_taken() -> None:
    """For example that of the deterministic deployer, which deploys one contract on every chain
    (EIP-155).
    """
    code = bytes.fromhex(
        "604580600e600039806000f350fe7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
        "e03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3"
    )
    half = int("22" * 32, 16)
    transaction = decode_transaction(rlp([0, 100 * GWEI, 100_000, b"", 0, code, 27, half, half]))
    assert transaction.chain_id is None
    assert transaction.sender.hex() == "3fab184622dc19b6109349b94811493bf2a45362"
    assert admit(transaction, TERMS, 0).fee_cap == 100 * GWEI


def test_the_cost_includes_l1_fee_and_operator_fee() -> None:
    """With Base mainnet's parameters the smallest transaction costs 1,918,900,020 wei of L1 fee."""
    transaction = transfer(0, 0, value=5)
    plain = 5 + 21_000 * 10 * GWEI
    assert admit(transaction, TERMS, 0).cost == plain + 1_918_900_020
    operated = terms(l1_fees=L1Fees(0, 0, 0, 0, 3, 9, da_footprint_gas_scalar=400))
    assert admit(transaction, operated, 0).cost == plain + 21_000 * 3 * 100 + 9
    assert admit(transaction, operated, 0).data_footprint == 40_000


def test_a_price_is_fee_cap_and_tip_in_one() -> None:
    pooled = admit(legacy(3 * GWEI), TERMS, 0)
    assert (pooled.fee_cap, pooled.tip_cap) == (3 * GWEI, 3 * GWEI)
    assert pooled.tip(base_fee=GWEI) == 2 * GWEI
    assert pooled.tip(base_fee=4 * GWEI) == -GWEI
