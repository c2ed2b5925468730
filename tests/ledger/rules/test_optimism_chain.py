"""Chains under OP rules, built here because no published one is available.

Expected values do not come from the builder: published constants (the code hash of the create2
deployer, the footprint of the smallest transaction), sums that must match (supply, vaults), and
rules of the specification for deposits.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from foreblock._engine import State, keccak256
from foreblock.errors import BadBlock
from foreblock.ledger.rules.execution import CREATE2_DEPLOYER
from support.chains.builder import ChainBuilder
from support.chains.importing import import_bytes, latest, refusing
from support.chains.profiles import JOVIAN

# of the signed transactions below
SENDER = bytes.fromhex("9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f")
PAID = b"\x35" * 20
DEPOSITOR = b"\xd0" * 20
L1_BLOCK = bytes.fromhex("4200000000000000000000000000000000000015")
MESSAGE_PASSER = bytes.fromhex("4200000000000000000000000000000000000016")
BASE_FEE_VAULT = bytes.fromhex("4200000000000000000000000000000000000019")
COINBASE = bytes.fromhex("4200000000000000000000000000000000000011")
ETHER = 10**18

# Signed for chain 901 with the key 0x46…46.
TRANSFER_0 = bytes.fromhex(
    "02f86d82038580843b9aca0085012a05f2008252089435353535353535353535353535353535353535350180c080a0"
    "dfb7fb947e9b219d26cc3b0b98021951f8aabd94792c98fc37dd07b1caf14aefa0742742c4679d50987cf25703a482"
    "c9d5075613e181075535ea66fa161239b50d"
)
TRANSFER_1 = bytes.fromhex(
    "02f86d82038501843b9aca0085012a05f2008252089435353535353535353535353535353535353535350180c001a0"
    "2fc04aefe0fd57ef8340e2bf56d0f072784917f80019fbeba47ea59c5939f0aea033e0f3d27520bff8ef66655cd814"
    "77cc7f482aac0f6be5ece1b971141b06aa1c"
)
BLOB = bytes.fromhex(
    "03f89182038580843b9aca0085012a05f200830186a09435353535353535353535353535353535353535358080c00a"
    "e1a0011111111111111111111111111111111111111111111111111111111111111101a0bdd7c0d43b852e2dc5c272"
    "821d34a8ee5fd72554ca2f1fdcee7b9755627c218fa04456b1f68a2d90bba8108e0042533231a903af9fa3279305ca"
    "a0375785cdf3bb"
)


def rlp(item: bytes | int | list[Any]) -> bytes:
    """Recursive-length prefix encoding of values shorter than 256 bytes."""
    if isinstance(item, int):
        item = item.to_bytes((item.bit_length() + 7) // 8)
    if isinstance(item, bytes) and len(item) == 1 and item[0] < 0x80:
        return item
    payload = b"".join(map(rlp, item)) if isinstance(item, list) else item
    first = 0xC0 if isinstance(item, list) else 0x80
    if len(payload) <= 55:
        return bytes([first + len(payload)]) + payload
    return bytes([first + 56, len(payload)]) + payload


def deposit(
    seed: int, mint: int = 0, value: int = 0, gas: int = 100_000, to: bytes = PAID
) -> bytes:
    """A deposit as derived by an L2 from an event on L1."""
    source = bytes([seed]) * 32
    return b"\x7e" + rlp([source, DEPOSITOR, to, mint, value, gas, 0, b""])


def genesis(**config: object) -> bytes:
    alloc = {
        "0x" + SENDER.hex(): {"balance": str(1_000 * ETHER)},
        # The scalar 400 for the data footprint, at its position in the attributes deposit.
        "0x" + L1_BLOCK.hex(): {
            "balance": "0",
            "nonce": "0x1",
            "storage": {"0x08": hex(400 << 96)},
        },
        "0x" + MESSAGE_PASSER.hex(): {"balance": "0", "nonce": "0x1", "storage": {"0x00": "0x01"}},
    }
    return json.dumps(
        {
            "config": JOVIAN | config,
            "gasLimit": "0x1c9c380",
            "difficulty": "0x0",
            "extraData": "0x0100000032000000060000000000000000",
            "alloc": alloc,
        }
    ).encode()


@pytest.fixture
def chain(tmp_path: Path) -> ChainBuilder:
    return ChainBuilder(tmp_path / "built", genesis())


def state(chain: ChainBuilder) -> State:
    return chain.store.view().state(chain.tip.header.number)


def test_built_chain_is_imported(chain: ChainBuilder, tmp_path: Path) -> None:
    chain.add([deposit(1, mint=5 * ETHER), TRANSFER_0], beneficiary=COINBASE)
    chain.add([deposit(2), TRANSFER_1], beneficiary=COINBASE, gas_limit=60_000_000)
    blocks = b"".join(block.encode() for block in chain.blocks)
    assert import_bytes(tmp_path / "store", genesis(), blocks).blocks == 2


def test_deposit_mints_and_pays(chain: ChainBuilder) -> None:
    chain.add([deposit(1, mint=5 * ETHER, value=2 * ETHER)])
    assert state(chain).balance(DEPOSITOR) == 3 * ETHER
    assert state(chain).balance(PAID) == 2 * ETHER
    assert state(chain).nonce(DEPOSITOR) == 1


def test_failed_deposit_keeps_its_mint_and_uses_its_gas(chain: ChainBuilder) -> None:
    block = chain.add([deposit(1, mint=ETHER, value=2 * ETHER)])
    assert state(chain).balance(DEPOSITOR) == ETHER
    assert state(chain).balance(PAID) == 0
    assert state(chain).nonce(DEPOSITOR) == 1
    assert block.header.gas_used == 100_000


def test_nothing_is_created_or_burned_but_the_mint(chain: ChainBuilder) -> None:
    block = chain.add([deposit(1, mint=5 * ETHER), TRANSFER_0], beneficiary=COINBASE)
    accounts = state(chain).accounts(None, 1_000)
    assert sum(account.balance for _, account in accounts) == 1_005 * ETHER
    fee = block.header.base_fee_per_gas
    assert fee is not None
    assert state(chain).balance(BASE_FEE_VAULT) == 21_000 * fee
    assert state(chain).balance(COINBASE) == 21_000 * 10**9


def test_data_footprint_of_the_smallest_transactions(chain: ChainBuilder) -> None:
    """Two of them at the scalar 400 make 80,000; deposits do not count."""
    block = chain.add([deposit(1), TRANSFER_0, TRANSFER_1])
    assert block.header.blob_gas_used == 80_000
    assert chain.add([deposit(2)]).header.blob_gas_used == 0


def test_withdrawals_root_is_the_message_passers_storage(chain: ChainBuilder) -> None:
    block = chain.add()
    root = "821e2556a290c86405f8160a2d662042a431ba456b9db265c79bb837c04be5f0"
    assert block.header.withdrawals_root is not None
    assert block.header.withdrawals_root.hex() == root  # of a trie with the single slot 0 = 1


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"withdrawals_root": bytes(32)}, "withdrawals root: expected 0x"),
        ({"blob_gas_used": 7}, "blob gas used: expected 40000, found 7"),
        ({"requests_hash": bytes(32)}, "requests hash: expected 0xe3b0c442"),
        ({"extra_data": b""}, "extra data: expected 17 bytes"),
        ({"difficulty": 1}, "difficulty: expected 0, found 1"),
    ],
)
def test_wrong_header_is_refused(
    chain: ChainBuilder, tmp_path: Path, changes: dict[str, Any], text: str
) -> None:
    block = chain.build([deposit(1), TRANSFER_0], **changes)
    with refusing(BadBlock, match=f"block 1: {text}"):
        import_bytes(tmp_path / "store", genesis(), block.encode())
    assert latest(tmp_path / "store") == 0


def test_blob_transaction_is_refused(chain: ChainBuilder) -> None:
    with refusing(BadBlock, match="transaction 0: expected a type that OP chains have"):
        chain.build([BLOB])


def test_every_fork_from_bedrock_to_karst_in_one_chain(tmp_path: Path) -> None:
    """A fork every ten seconds; extra data and deployed code change as required."""
    names = ["regolith", "canyon", "ecotone", "fjord", "granite", "holocene", "isthmus",
             "jovian", "karst"]  # fmt: skip
    times = {f"{name}Time": 10 * (index + 2) for index, name in enumerate(names)}
    text = json.loads(genesis(**times))
    text["extraData"] = "0x"
    document = json.dumps(text).encode()
    chain = ChainBuilder(tmp_path / "built", document)
    holocene, jovian = "000000003200000006", "010000003200000006" + "00" * 8
    for index in range(len(names) + 1):
        extra_data = bytes.fromhex(jovian if index >= 8 else holocene if index >= 6 else "")
        chain.add([deposit(index + 1, mint=1)], extra_data=extra_data)
    view = chain.store.view()
    assert view.state(2).code(CREATE2_DEPLOYER) == b""
    deployed = keccak256(view.state(3).code(CREATE2_DEPLOYER))
    assert deployed.hex() == "b0550b5b431e30d38000efb7107aaa0ade03d48a7198a140edda9d27134468b2"
    fields = [
        (
            block.header.withdrawals_root is not None,
            block.header.excess_blob_gas is not None,
            block.header.requests_hash is not None,
        )
        for block in chain.blocks
    ]
    none, canyon, ecotone, isthmus = (
        (False, False, False), (True, False, False), (True, True, False), (True, True, True)
    )  # fmt: skip
    assert fields == [none] * 2 + [canyon] + [ecotone] * 4 + [isthmus] * 3
    blocks = b"".join(block.encode() for block in chain.blocks)
    assert import_bytes(tmp_path / "store", document, blocks).blocks == 10
