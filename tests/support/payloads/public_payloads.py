"""Flashblocks of public chains, as field values, from which their messages are put together.

    Unichain Sepolia 35535698   all five messages of the block; the last one's hash is the
                                sealed block's. From base/base at 98a8db8d, a test in
                                crates/alloy/rpc-types-engine/src/envelope.rs. State roots are
                                real, `base` is null after index 0, and receipts and balances
                                were emptied by whoever published it.
    Base Sepolia 33439826       index 0, from the same file; its state root is zero.
    Base mainnet 50393250       index 0, from nick-kuhle/JerseyMikes at b319a498,
                                index0_base.json; the newest dialect.

Transactions are put together from their fields as well. Nothing of foreblock is used here.
"""

import struct
from collections.abc import Mapping
from typing import Any

from support.payloads import rlp

NO_BLOOM = "0x" + "00" * 256
SEQUENCER_FEE_VAULT = "0x4200000000000000000000000000000000000011"
L1_BLOCK = bytes.fromhex("4200000000000000000000000000000000000015")
DEPOSITOR = bytes.fromhex("deaddeaddeaddeaddeaddeaddeaddeaddead0001")
ISTHMUS, JOVIAN = "098999be", "3db6be2b"  # selectors of the attributes

# The contract that counts Unichain's flashblocks, and the event that each of them logs.
COUNTER = bytes.fromhex("f878f0340bf132c28f3211e8b46c569edf817495")
INCREMENT = "3fd553e8"
INCREMENTED = b"FlashblockIncremented(uint256)"
COUNTER_BLOOM_BITS = (282, 290, 498, 962, 1536, 1573)


def attributes(
    selector: str, source: str, scalars: tuple[int, int], place: tuple[int, int, int],
    fees: tuple[int, int], l1_hash: str, batcher: str, *, footprint: int | None = None,
) -> str:  # fmt: skip
    """The first transaction of a block.

    `place` is its sequence number, and time and number of the L1 block.
    """
    data = bytes.fromhex(selector) + struct.pack(">IIQQQ", *scalars, *place)
    data += b"".join(fee.to_bytes(32) for fee in fees)
    data += bytes.fromhex(l1_hash) + bytes.fromhex(batcher).rjust(32, b"\0") + bytes(12)
    if footprint is not None:
        data += footprint.to_bytes(2)
    items: list[bytes | int] = [
        bytes.fromhex(source),
        DEPOSITOR,
        L1_BLOCK,
        0,
        0,
        1_000_000,
        0,
        data,
    ]
    return "0x7e" + rlp.encode([rlp.encode(each) for each in items]).hex()


def builder_transaction(
    nonce: int, gas: int, to: bytes, data: bytes, parity: int, r: str, s: str
) -> str:
    """A transaction of Unichain's builder, without a tip."""
    fields: list[bytes | int] = [1301, nonce, 0, 51, gas, to, 0, data]
    signature: list[bytes | int] = [parity, bytes.fromhex(r), bytes.fromhex(s)]
    items = [*map(rlp.encode, fields), rlp.encode([]), *map(rlp.encode, signature)]
    return "0x02" + rlp.encode(items).hex()


def increment(nonce: int, parity: int, r: str, s: str) -> str:
    """The first transaction of each later flashblock."""
    return builder_transaction(nonce, 34_825, COUNTER, bytes.fromhex(INCREMENT), parity, r, s)


def _bloom(bits: tuple[int, ...]) -> str:
    return f"0x{sum(1 << bit for bit in bits).to_bytes(256).hex()}"


UNICHAIN_WITHDRAWALS = "0x62ed62e0391b081bf172f287fbbe75e87d8a6c22f1d3b1f1aef4788c134633d2"
UNICHAIN_BASE = {
    "parent_beacon_block_root":
        "0xf6d335a6b2b4fd8fb539cd51a49769df4d53c31a90c54dd270e54542638ff101",
    "parent_hash": "0x06ff95a9cd23b0328da74a984aa986b2e01d377dab1825f1029e39ece6c4a3ea",
    "fee_recipient": SEQUENCER_FEE_VAULT,
    "prev_randao": "0x8beee738d20a9d77c5f27e9cb799ebe5b536f0985efad5f7d77ebff47f092c4a",
    "block_number": hex(35535698),
    "gas_limit": hex(60_000_000),
    "timestamp": hex(1762388126),
    "extra_data": "0x00000000320000000c",
    "base_fee_per_gas": hex(51),
}  # fmt: skip
# State root, receipts root, gas used, block hash.
UNICHAIN_RESULTS = [
    ("b29a9bcae8cf3ae6d68985fcd70db80b3818cd629c9d5da0bb116451739b2078",
     "91d8ad10740ccfc1bd848fba0e02668d95769c08eeea30f10698692ba86c6159", 67_988,
     "a66f8562a861f906a2438d7d6ba79495640d98d9c6922b9605c54b57f97a345c"),
    ("fb1794f74d405b345672c57a5053c6105cc55c8e63f96fb0db5b0260df42413a",
     "1eaaaeb9d43bead7d32b90f1b320589174c63d2fa8f5fd366f841a205b1eb2e0", 102_269,
     "67b0521ebfcb03d6ce2b6e1bad9c9c66795365f63ad8dc51e1e8f582a5ab7821"),
    ("90dd105c4a2a0dd9ffe994204bfa3e2b4f70f7ea760d5cb9a4263f26a89f91b4",
     "0fff0488aa3732c34018b938839ab2f0caa96018221e4ffaeca011fb06ba288f", 136_550,
     "720feb7457110a565b479fafbaa89cc984f5d673846a27d44bbb8cf5200b32fe"),
    ("71f8c60fdfdd84cffda3b0b6af7c8ff92195918f4fc2abae750a7306521ac0dc",
     "a62d1d98f56ffb1464a2beb185484253df68208004306e155c0bd1519137afe6", 170_831,
     "670844e30f7325d4f290ea375e01f7e819afca317fc7db9723e6867a184984fa"),
    ("5615e4342d231c352438f0ba6a8f0f641459f67961961764b781a909969b28ad",
     "588e1d47b0618d7e935b20c3945cba3b7b8c00141904f79ceed20312ea502e63", 205_112,
     "c463a3120c35268f610d969f5608b479332ef10953af77c7a6be806195831196"),
]  # fmt: skip
UNICHAIN_TRANSACTIONS = [
    [
        attributes(
            ISTHMUS, "35dd2ec802504a143048c7830f8f570e0d6cf5147217af869939c6b4ba710a36",
            (2_000, 900_000), (8, 1762388040, 9569326), (9, 1),
            "0ffd7e2fb2c36e5f27c015872ce733a7b4f3fc0f4ee668d7469c557c48f8250f",
            "4ab3387810ef500bfe05a49dc53a44c222cbab3e",
        ),
        builder_transaction(
            29_944_465, 21_880, bytes(20), b"Block Number: 35535698", 0,
            "91f83058c881d9ad71c179ce680326501702eb68150d20b2bf7786e388f954a2",
            "180185d83e503f11bf3c265c1f9296ed8d3d7c04031cd8bb30509ad188ce7bbc",
        ),
    ],
    [increment(29_944_466, 1, "d73ce313aafea312e0b7244767e45f8b05d50305e0f4e4c3c564ddc751666815",
               "2ee015ce2363311823c0b2e96bfb0e8090fd53c6cdd99be8cf343af123036dfc")],
    [increment(29_944_467, 1, "f8cd94080642e116bc772f36a02d002505227aa542e1c13e5129ab40b8b037fb",
               "0608318d3895388e39b218bcb275380cebc566e68f26d3d434e32b8b58366cdf")],
    [increment(29_944_468, 0, "4368492ec1d087703aaf6f5fefe4427b3bf382e5cd07133f638bb6701f15fe61",
               "5e28757fbdc7e744118be36d5a1548eb7c009eefcb5dc5c5040e09c2fc6de9d8")],
    [increment(29_944_469, 0, "802ba6d4f37e3b8de96095bd0b216144f276171d16dc62a004f1a89009af5dee",
               "0f0c6250cfd1a062a1bc2bc353a5c227a980cac0f233b7be8932f2192342ec4f")],
]  # fmt: skip


def unichain_sepolia_35535698() -> list[dict[str, Any]]:
    """All messages of the block."""
    messages = []
    results = zip(UNICHAIN_RESULTS, UNICHAIN_TRANSACTIONS, strict=True)
    for index, ((state, receipts, gas_used, block_hash), transactions) in enumerate(results):
        diff = {
            "state_root": f"0x{state}",
            "receipts_root": f"0x{receipts}",
            "logs_bloom": _bloom(COUNTER_BLOOM_BITS if index else ()),
            "gas_used": hex(gas_used),
            "block_hash": f"0x{block_hash}",
            "transactions": transactions,
            "withdrawals": [],
            "withdrawals_root": UNICHAIN_WITHDRAWALS,
        }
        metadata = {"block_number": 35535698, "new_account_balances": {}, "receipts": {}}
        base = UNICHAIN_BASE if index == 0 else None
        messages.append(_message("0x03c446f063e3735a", index, base, diff, metadata))
    return messages


def base_sepolia_33439826() -> dict[str, Any]:
    """Index 0, in a dialect without `blob_gas_used`."""
    base = {
        "parent_beacon_block_root":
            "0xf058b1e43890ed5f838bd07e77db06d075d894343d1b31f6099a345b0d8f7d1b",
        "parent_hash": "0x6ffd2714d5af6c412c57db3f664a5a127516573bbd987fd242d06f71ea662741",
        "fee_recipient": SEQUENCER_FEE_VAULT,
        "prev_randao": "0x9985c1f8ec25b468cbf2b727a8371b4554b7e7adb059c08abf7a7d51d86ceee5",
        "block_number": hex(33439826),
        "gas_limit": hex(60_000_000),
        "timestamp": hex(1762647940),
        "extra_data": "0x000000003200000004",
        "base_fee_per_gas": hex(52),
    }  # fmt: skip
    deposit = attributes(
        ISTHMUS, "1c055ffd19ea027da4a8aae0a2734c6bf17c3f487d4cc22931d7dbe261409cda",
        (1_101, 659_851), (4, 1762647612, 9589475), (10, 1),
        "4f1595c3798e3082aa093e433bd5cbd102a11f9619d20e6e821c1a30fb56b12b",
        "fc56e7272eebbba5bc6c544e159483c4a38f8ba3",
    )  # fmt: skip
    diff = {
        "state_root": "0x" + "00" * 32,
        "receipts_root": "0x1b2fa5e4cbbc1f8c01a7c7204571ebe339dbdfadc666451d8e70d5c10c99830f",
        "logs_bloom": NO_BLOOM,
        "gas_used": hex(46_108),
        "block_hash": "0x87c6775cc427caf4c0ffe0d4b6d76627536f38d77d23f105f9f104ef3e5541c7",
        "transactions": [deposit],
        "withdrawals": [],
        "withdrawals_root": "0x77b0fb1616a212bd7cf33d7c28651f19bf6093b2c5f1967e674ec861aeaf9d44",
    }
    metadata = {"block_number": 33439826, "new_account_balances": {}, "receipts": {}}
    return _message("0x03c33cc62b81edb6", 0, base, diff, metadata)


def base_mainnet_50393250() -> dict[str, Any]:
    """Index 0, in the dialect with the predecessor; Jovian's attributes."""
    base = {
        "parent_beacon_block_root":
            "0x3e418685bfaf1011c73b68f73f316afb963729c4af458e286fe070ec9efe2929",
        "parent_hash": "0xbe41e7d3c15da35a8c66d10c746b91d221abcd3e401992b2c4c9b2404c8a7263",
        "fee_recipient": SEQUENCER_FEE_VAULT,
        "prev_randao": "0x876ae90d25251262cd3d69557ffcb16fe5b028576bcd1afa67dab9dde10c91ad",
        "block_number": hex(50393250),
        "gas_limit": hex(400_000_000),
        "timestamp": hex(1787575847),
        "extra_data": "0x01000000640000000500000000004c4b40",
        "base_fee_per_gas": hex(5_000_000),
    }  # fmt: skip
    deposit = attributes(
        JOVIAN, "a911f8e1efe087fcafa0bb7bcea326aa6fba0bdb16636d082693be64d9b72e84",
        (2_269, 1_055_762), (3, 1787575787, 25825143), (184_831_724, 11_819_775),
        "44a1c7745f7c66b53d7585eb44417efb3f5c95f410d1e876af6ecd7898666e77",
        "5050f69a9786f081509234f1a7f4684b5e5b76c9", footprint=148,
    )  # fmt: skip
    diff = {
        "state_root": "0x" + "00" * 32,
        "receipts_root": "0xb763a3a8b333181108aa79512e0c740e511ea5ed07eb220d3322aab1e246749a",
        "logs_bloom": NO_BLOOM,
        "gas_used": hex(46_218),
        "block_hash": "0x14a08aed99dbb02fee20d5b0bbbeeadb8563eaa3550a8031046d2b69560c5fdb",
        "transactions": [deposit],
        "withdrawals": [],
        "withdrawals_root": "0xcb5c1231bb290858c8745fa2d836d89321b848b78b21dd5f2a2093555e7046fa",
        "blob_gas_used": "0x0",
    }
    metadata = {"block_number": 50393250, "prev_flashblock_id": "50393249-10"}
    return _message("0x03f4dcea174d9df1", 0, base, diff, metadata)


def _message(
    payload_id: str,
    index: int,
    base: Mapping[str, str] | None,
    diff: Mapping[str, object],
    metadata: Mapping[str, object],
) -> dict[str, Any]:
    return {
        "payload_id": payload_id, "index": index, "base": base, "diff": diff, "metadata": metadata
    }  # fmt: skip
