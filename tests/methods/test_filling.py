"""eth_fillTransaction beyond the cases of geth: views, the pool, long lists, limits."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.ledger.reading.view import Ledger
from foreblock.methods.pool.filling import MOST_BYTES
from foreblock.primitives import RlpItem, encode_rlp
from foreblock.types import Transaction, keccak256
from support.chains.preconfirming import COUNTER, SENDER, PreconfirmingChain
from support.payloads.rlp import encode
from support.servers.asking import Asker, asker

PAYER, COUNT = "0x" + SENDER.hex(), "0x" + COUNTER.hex()

ITEMS = st.recursive(
    st.binary(max_size=70) | st.binary(min_size=250, max_size=300),
    lambda items: st.lists(items, max_size=4),
    max_leaves=20,
)


def nested(item: RlpItem) -> bytes:
    """The encoding by the tests' RLP."""
    return encode(item if isinstance(item, bytes | int) else [nested(each) for each in item])


@given(ITEMS)
def test_encoding_is_rlp(item: RlpItem) -> None:
    assert encode_rlp(item) == nested(item)


@given(st.integers(0, 2**256))
def test_numbers_have_no_leading_zeros(number: int) -> None:
    assert encode_rlp(number) == encode(number)


class Pool:
    """A sequencer that knows a nonce of the sender."""

    async def submit(self, raw: bytes, sender: bytes) -> None:
        raise AssertionError(raw, sender)

    def try_submit(self, transaction: Transaction) -> bool:  # noqa: ARG002, as declared
        return False

    def next_nonce(self, sender: bytes) -> int:
        return 9 if sender == SENDER else 0


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    """A sealed block, and one in progress with the first use of the counter."""
    found = PreconfirmingChain(tmp_path / "store")
    found.begin()
    found.extend([found.pay()])
    found.begin()
    found.extend([found.pay(COUNTER, 7)])
    yield found
    found.close()


def filled(client: Asker, **fields: Any) -> dict[str, Any]:  # noqa: ANN401, JSON
    found: dict[str, Any] = client.ask("eth_fillTransaction", {"from": PAYER, "to": COUNT} | fields)
    return {**found["tx"], "raw": found["raw"]}


def test_gas_and_fees_are_those_of_the_block_that_the_view_builds_on(
    chain: PreconfirmingChain,
) -> None:
    ledger = Ledger(chain.store, clock=chain.clock)
    base_fees = {}
    for view, block in (("preconfirmed", "pending"), ("sealed", "latest")):
        with asker(ledger, view=view) as client:
            found = filled(client, value="0x1", maxPriorityFeePerGas="0x5")
            estimated = client.ask(
                "eth_estimateGas", {"from": PAYER, "to": COUNT, "value": "0x1"}, block
            )
            assert found["gas"] == estimated
            header = client.ask("eth_getBlockByNumber", block, False)
            base_fees[view] = int(header["baseFeePerGas"], 16)
            assert int(found["maxFeePerGas"], 16) == 2 * base_fees[view] + 5
            assert found["nonce"] == "0x2", "after all that waits, in either view"
    assert base_fees["preconfirmed"] != base_fees["sealed"], "else it shows nothing"


def test_nonce_follows_the_pool(chain: PreconfirmingChain) -> None:
    ledger = Ledger(chain.store, clock=chain.clock)
    with asker(ledger, submissions=Pool()) as client:
        assert filled(client)["nonce"] == "0x9"
        assert filled(client, nonce="0x1")["nonce"] == "0x1"


def test_long_access_list_is_filled_in_whole(chain: PreconfirmingChain) -> None:
    keys = ["0x" + number.to_bytes(32).hex() for number in range(3_000)]
    entries = [{"address": COUNT, "storageKeys": keys}, {"address": PAYER, "storageKeys": []}]
    with asker(Ledger(chain.store, clock=chain.clock)) as client:
        found = filled(
            client, gas="0x5208", nonce="0x0", maxPriorityFeePerGas="0x1", maxFeePerGas="0x2",
            accessList=entries,
        )  # fmt: skip
    assert found["accessList"] == entries
    listed: RlpItem = [[COUNTER, [bytes.fromhex(each[2:]) for each in keys]], [SENDER, []]]
    raw = b"\2" + nested([901, 0, 1, 2, 21_000, COUNTER, 0, b"", listed, 0, 0, 0])
    assert found["raw"] == "0x" + raw.hex()
    assert found["hash"] == "0x" + keccak256(raw).hex()


def test_more_than_any_pool_takes_is_refused_with_its_size(chain: PreconfirmingChain) -> None:
    with asker(Ledger(chain.store, clock=chain.clock)) as client:
        refused = client.ask("eth_fillTransaction", {"to": COUNT, "data": "0x" + "00" * MOST_BYTES})
        assert refused["code"] == -32000
        assert refused["message"].startswith("transaction too large: its arguments have ")
        assert refused["message"].endswith(f"limit {MOST_BYTES}")


def test_arguments_are_checked(chain: PreconfirmingChain) -> None:
    with asker(Ledger(chain.store, clock=chain.clock)) as client:
        for params in ((), (None,), (1,), ({"to": "0x1"},), ({"to": COUNT}, "latest")):
            assert client.ask("eth_fillTransaction", *params)["code"] == -32602
