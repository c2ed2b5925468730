"""A chain of 340 blocks with some 5,000 random logs from a fixed seed.

Fifteen contracts log their input: three for each number of topics, which log once, twice and four
times. Addresses and topics come from small sets, so that most filters match; a block in eight is
empty. The chain is long enough for sections of the index to be merged.
"""

import json
import random
from pathlib import Path
from typing import Final

from foreblock._engine import Message, address_of, keccak256, sign_transaction
from support.chains.builder import ChainBuilder
from support.chains.example import FOLDER as EXAMPLE
from support.chains.example import fork_choice
from support.payloads.bytecode import code

CHAIN_ID: Final = 77_077
GWEI: Final = 10**9
BLOCKS: Final = 340
SECRET: Final = b"\x4c" * 32
TIMES: Final = (1, 2, 4)
CONTRACTS: Final = {
    (topics, times): bytes([0xA0 + topics]) * 19 + bytes([times])
    for topics in range(5)
    for times in TIMES
}
TOPICS: Final = [keccak256(bytes([each])) for each in range(10)] + [
    address.rjust(32, b"\0") for address in list(CONTRACTS.values())[:3]
]


def _logging(topics: int, times: int) -> str:
    """Code that logs its input, which begins with the topics."""
    words = [each for at in reversed(range(topics)) for each in (32 * at, "CALLDATALOAD")]
    one = [*words, "CALLDATASIZE", 0, f"LOG{topics}"]
    return code("CALLDATASIZE", 0, 0, "CALLDATACOPY", *one * times)


def genesis() -> bytes:
    """The genesis file, with all forks up to Prague active."""
    example = json.loads((EXAMPLE / "genesis.json").read_bytes())
    system = {who: what for who, what in example["alloc"].items() if who.startswith("0x000")}
    contracts = {
        f"0x{address.hex()}": {"balance": "0", "code": _logging(*kind)}
        for kind, address in CONTRACTS.items()
    }
    blocks = (
        "homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg",
        "istanbul", "muirGlacier", "berlin", "london", "arrowGlacier", "grayGlacier",
    )  # fmt: skip
    times = ("shanghaiTime", "cancunTime", "pragueTime")
    config = {"chainId": CHAIN_ID, "terminalTotalDifficulty": 0}
    config |= dict.fromkeys((f"{fork}Block" for fork in blocks), 0) | dict.fromkeys(times, 0)
    return json.dumps(
        {
            "config": config | {"blobSchedule": example["config"]["blobSchedule"]},
            "timestamp": "0x0",
            "extraData": f"0x{b'logs'.hex()}",
            "gasLimit": hex(30_000_000),
            "difficulty": "0x0",
            "alloc": system
            | contracts
            | {f"0x{address_of(SECRET).hex()}": {"balance": str(10**24)}},
        }
    ).encode()


def write(folder: Path) -> None:
    """Write genesis, blocks and fork choice into a folder."""
    chance = random.Random(15)
    (folder / "genesis.json").write_bytes(genesis())
    builder = ChainBuilder(folder / "built", genesis())
    nonce = 0
    for number in range(1, BLOCKS + 1):
        count = 0 if number % 8 == 0 else chance.randrange(1, 12)
        builder.add([_call(chance, nonce + each) for each in range(count)])
        nonce += count
    builder.store.close()
    (folder / "chain.rlp").write_bytes(b"".join(block.encode() for block in builder.blocks))
    (folder / "head.json").write_bytes(fork_choice(builder.blocks))


def _call(chance: random.Random, nonce: int) -> bytes:
    (topics, _), address = chance.choice(list(CONTRACTS.items()))
    words = [chance.choice(TOPICS) for _ in range(topics)]
    message = Message(
        sender=bytes(20),
        to=address,
        data=b"".join(words) + chance.randbytes(chance.randrange(40)),
        gas=200_000,
        max_fee_per_gas=100 * GWEI,
        max_priority_fee_per_gas=GWEI,
    )
    return sign_transaction(message, 2, CHAIN_ID, nonce, SECRET).raw
