"""debug_executionWitness: a block is executed from it alone, and not from any smaller witness."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.cli.witness_file import parse_witness
from foreblock.errors import MissingCode, MissingHeader, MissingNode
from foreblock.ledger.building.witness_execution import execute_witnessed
from foreblock.ledger.rules.transaction_rules import created_address
from foreblock.ledger.storage.rows import CONFIG
from support.chains import long_chain as made
from support.chains.paying_chain import PayingChain, client_of, paying_chain
from support.payloads.bytecode import code
from support.payloads.dev_state import ALICE
from support.servers.asking import Asker, error, text_of, witness_file

Json = Any
INCOMPLETE = (MissingNode, MissingCode, MissingHeader)
LONG_CONFIG = json.loads(made.genesis())["config"]

# Sets the slot of the first word of its input to the second.
KEEPER = bytes.fromhex(code(32, "CALLDATALOAD", 0, "CALLDATALOAD", "SSTORE")[2:])
# Reads the hash of the block that is this many blocks before the current one.
ASKER = bytes.fromhex(code(0, "CALLDATALOAD", "NUMBER", "SUB", "BLOCKHASH", 0, "SSTORE")[2:])
# Transfers its balance to the address in its input, and destroys itself in its creation
# transaction.
GIVER = bytes.fromhex(code("CALLER", "SELFDESTRUCT")[2:])


def deploying(runtime: bytes) -> bytes:
    """Init code that deploys this code, of up to 32 bytes."""
    padded = runtime.ljust(32, b"\0")
    return bytes.fromhex(code(padded, 0, "MSTORE", len(runtime), 0, "RETURN")[2:])


def executed(file: dict[str, Json]) -> str:
    """The hash of the block that results from a file."""
    return "0x" + execute_witnessed(parse_witness(text_of(file))).hash.hex()


def config_of(chain: PayingChain) -> Json:
    with chain.store.view() as view:
        return json.loads(view.row(CONFIG) or b"")


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32) for number in numbers)


def test_blocks_of_every_fork_are_executed_from_their_witnesses(ethereum: Asker) -> None:
    count = 0
    for number in range(1, made.HEAD + 1):
        block = ethereum.ask("eth_getBlockByNumber", hex(number), False)
        if block["uncles"]:
            continue
        assert executed(witness_file(ethereum, LONG_CONFIG, number)) == block["hash"], number
        count += 1
    assert count > 40  # the others have uncles


def test_nothing_in_a_witness_is_too_much(ethereum: Asker) -> None:
    whole = witness_file(ethereum, LONG_CONFIG, 53)
    for part in ("state", "codes"):
        assert whole["witness"][part]
        for place in range(len(whole["witness"][part])):
            items = list(whole["witness"][part])
            items.pop(place)
            lacking = whole | {"witness": whole["witness"] | {part: items}}
            with pytest.raises(INCOMPLETE):
                executed(lacking)


def test_both_names_mean_the_same(ethereum: Asker) -> None:
    block = ethereum.ask("eth_getBlockByNumber", "0x30", False)
    witness = ethereum.ask("debug_executionWitness", "0x30")
    for name in ("debug_executionWitnessByBlockHash", "debug_executionWitnessByHash"):
        assert ethereum.ask(name, block["hash"]) == witness
    headers = witness["headers"]
    assert headers == [ethereum.ask("debug_getRawHeader", "0x2f")]
    assert made.RICH in witness["keys"]


def test_what_has_no_witness_is_said(ethereum: Asker) -> None:
    assert ethereum.ask("debug_executionWitness", "0x0") == error(
        -32000, "genesis is not traceable"
    )
    assert ethereum.ask("debug_executionWitness", "0xfff") == error(-32000, "block #4095 not found")


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PayingChain]:
    with paying_chain(tmp_path / "store") as found:
        yield found


def test_a_block_in_progress_has_none(chain: PayingChain) -> None:
    with client_of(chain) as client:
        refused = client.ask("debug_executionWitness", "pending")
    assert refused == error(-32000, "block 1 is in progress and has no witness yet")


def test_hashes_of_earlier_blocks_need_their_headers(chain: PayingChain) -> None:
    deployed = created_address(ALICE, 0)
    chain.extend(chain.signed(None, data=deploying(ASKER)))
    for _ in range(6):
        chain.begin()
    chain.extend(chain.signed(deployed, data=words(4)))
    chain.begin()
    with client_of(chain) as client:
        file = witness_file(client, config_of(chain), 7)
        block = client.ask("eth_getBlockByNumber", "0x7", False)
    headers = file["witness"]["headers"]
    assert len(headers) == 4
    assert executed(file) == block["hash"]
    # The hash is in the header of the next block, so the oldest header adds nothing.
    file["witness"]["headers"] = headers[2:]
    with pytest.raises(MissingHeader) as missing:
        executed(file)
    assert missing.value.block == 3


def test_a_deleted_slot_brings_the_node_beside_it(chain: PayingChain) -> None:
    deployed = created_address(ALICE, 0)
    chain.extend(chain.signed(None, data=deploying(KEEPER)))
    chain.begin()
    chain.extend(*(chain.signed(deployed, data=words(slot, 9)) for slot in range(40)))
    for slot in range(40):
        chain.begin()
        chain.extend(chain.signed(deployed, data=words(slot, 0)))
    chain.begin()
    with client_of(chain) as client:
        for number in range(3, 43):
            file = witness_file(client, config_of(chain), number)
            block = client.ask("eth_getBlockByNumber", hex(number), False)
            assert executed(file) == block["hash"], number


Step = tuple[int, int, int]
steps = st.tuples(st.integers(0, 5), st.integers(0, 12), st.integers(0, 2))


@given(blocks=st.lists(st.lists(steps, max_size=6), min_size=1, max_size=5))
def test_random_blocks_are_executed_to_their_hashes(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[list[Step]]
) -> None:
    keeper, asker = created_address(ALICE, 0), created_address(ALICE, 1)
    with paying_chain(tmp_path_factory.mktemp("random") / "store") as chain:
        chain.extend(
            chain.signed(None, data=deploying(KEEPER)), chain.signed(None, data=deploying(ASKER))
        )
        chain.extend(*(chain.signed(keeper, data=words(slot, 1)) for slot in range(8)))
        for block in blocks:
            chain.begin()
            for kind, first, second in block:
                chain.extend(_transaction(chain, keeper, asker, kind, first, second))
        chain.begin()
        with client_of(chain) as client:
            for number in range(1, len(blocks) + 2):
                file = witness_file(client, config_of(chain), number)
                block_hash = client.ask("eth_getBlockByNumber", hex(number), False)["hash"]
                assert executed(file) == block_hash


def _transaction(
    chain: PayingChain, keeper: bytes, asker: bytes, kind: int, first: int, second: int
) -> Any:  # noqa: ANN401, a transaction
    match kind:
        case 0 | 1 | 2:
            return chain.signed(keeper, data=words(first, second))
        case 3:
            return chain.signed(bytes([first + 1]) * 20, value=second)
        case 4:
            return chain.signed(None, value=second, data=GIVER)
        case _:
            return chain.signed(asker, data=words(first))
