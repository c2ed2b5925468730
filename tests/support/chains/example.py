"""The chain in `examples/chain`: a dozen blocks through every fork, one feature in each.

Run this file to generate it again; a test compares.
"""

import json
import tempfile
from pathlib import Path

from foreblock._engine import Block
from foreblock.primitives import format_data
from support.chains.builder import ChainBuilder

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "chain"

# Signed with the key 0x46…46, whose account is funded in the genesis. The contract created by the
# second transaction stores its input in slot 0 and logs it.
TRANSFER_WITHOUT_CHAIN_ID = bytes.fromhex(
    "f86a80843b9aca0082520894353535353535353535353535353535353535353587038d7ea4c68000801ba04eb3e4b3"
    "1876c1a21feaae43f4dc6eae2afc83b8c529d66f4a30d73108a09d2da067b31d0bf1f6f16369766e4aab9d65e97e11"
    "f68e9fb071ebbb358874736b7b41"
)
CREATION = bytes.fromhex(
    "f87001847735940083030d4080809e6012600c60003960126000f36000358060005560005260aa60206000a100820a"
    "95a0ab622b454100320296efa0f4c4fb8f9539c6e0a2460acf23a7c58786f4c60360a02600d74233a436ff8d10b1e7"
    "d785a0adb2484957fe1d27086536bc53c6ef118b"
)
ACCESS_LIST = bytes.fromhex(
    "01f8c1820539028477359400830186a09420bb3edd03cdb25b85f5e7e5f107c801869cc3ae80a00000000000000000"
    "000000000000000000000000000000000000000000000007f838f79420bb3edd03cdb25b85f5e7e5f107c801869cc3"
    "aee1a0000000000000000000000000000000000000000000000000000000000000000080a05bac6f07d928b11df317"
    "2e6adbcba44a1d46ceb44e77425ac4c4ca98442d309da061b5e0f11a67a441d62cfcae65e4e4622c3f020ec4fdd173"
    "96d57dd5c567b94c"
)
DYNAMIC_FEE = bytes.fromhex(
    "02f88e82053903843b9aca0085012a05f200830186a09420bb3edd03cdb25b85f5e7e5f107c801869cc3ae80a00000"
    "000000000000000000000000000000000000000000000000000000000008c080a0c08f7f095fc99e9107dcf6b41adf"
    "eb5d9222a48fac31b31793efc616a6e554c2a079f491d579ecb9aa96593c9385ae5fe1adf156516c347d7d10229657"
    "e1231d48"
)
TRANSFER = bytes.fromhex(
    "02f86d82053904843b9aca0085012a05f2008252089435353535353535353535353535353535353535357b80c080a0"
    "1e85748a6a09920fea478d8d72a36de9818806f0779e7d9779c963a442938aaea04880f50690192dc7f2d1f9404313"
    "26a4a2dbfe020b1632b646cd8837c6675bab"
)
BLOB = bytes.fromhex(
    "03f8d382053905843b9aca0085012a05f200830186a09420bb3edd03cdb25b85f5e7e5f107c801869cc3ae80a00000"
    "000000000000000000000000000000000000000000000000000000000009c00af842a0011111111111111111111111"
    "1111111111111111111111111111111111111111a00122222222222222222222222222222222222222222222222222"
    "22222222222280a0c45844d37e1b374bb11a791baaf166a255119a31f11fc391627e88d67ae7e0eaa03a0cd37d75b1"
    "82d2d389a0391522f4a02959b6a38d5aac24617601fb9beed7a7"
)
SET_CODE = bytes.fromhex(
    "04f8ee82053906843b9aca0085012a05f20083030d4094b595b18c88b1f651ca387489067f855b5c8e672080a00000"
    "00000000000000000000000000000000000000000000000000000000000ac0f85ef85c8205399420bb3edd03cdb25b"
    "85f5e7e5f107c801869cc3ae8080a0375ab0a19a3f72115e48fcde3dbd473e3409fbd451aa7d8a984c40e91d8334f2"
    "a047e8df5963a97dd11a3a54a9c471b9609517f7535ab203f4b196cd9ef080807a80a0aceaf8c28a16c63f3c652fb8"
    "159055f58d1af730703b1caac1c21086815f248ba00a42d0bc48e41663b778e3c1e4a884a2391d425817a7c27b5b86"
    "56e7e69e6a08"
)


def build(folder: Path) -> ChainBuilder:
    """The example chain in a store in `folder`."""
    chain = ChainBuilder(folder, (FOLDER / "genesis.json").read_bytes())
    chain.add([TRANSFER_WITHOUT_CHAIN_ID])  # 1: Homestead, receipts with state roots
    uncle = chain.build(extra_data=b"uncle").header
    chain.add([CREATION])  # 2: Spurious Dragon
    chain.add(uncles=[uncle])  # 3: Byzantium, receipts with a status
    chain.add([ACCESS_LIST])  # 4: Berlin
    chain.add([DYNAMIC_FEE])  # 5: London, the last block before the merge
    chain.add()  # 6: the merge
    chain.add([TRANSFER], withdrawals=[(0, 7, b"\x77" * 20, 100)])  # 7: Shanghai
    chain.add([BLOB])  # 8: Cancun
    chain.add([SET_CODE])  # 9: Prague
    chain.add(withdrawals=[(1, 7, b"\x77" * 20, 100)])  # 10: Osaka
    chain.add()  # 11: more blobs
    chain.add(extra_data=b"the end")  # 12
    return chain


def fork_choice(blocks: list[Block]) -> bytes:
    """A consensus client's request: the last block is head, two earlier ones safe and final."""
    state = {
        "headBlockHash": format_data(blocks[-1].hash),
        "safeBlockHash": format_data(blocks[-2].hash),
        "finalizedBlockHash": format_data(blocks[-3].hash),
    }
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "engine_forkchoiceUpdatedV3",
        "params": [state, None],
    }
    return json.dumps(request, indent=2).encode() + b"\n"


def main() -> None:
    """Write the blocks and the fork choice next to the genesis."""
    with tempfile.TemporaryDirectory() as folder:
        blocks = build(Path(folder)).blocks
    (FOLDER / "chain.rlp").write_bytes(b"".join(block.encode() for block in blocks))
    (FOLDER / "head.json").write_bytes(fork_choice(blocks))


if __name__ == "__main__":
    main()
