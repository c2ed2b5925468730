"""Transactions on their way to a sequencer."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock._engine import Message, sign_transaction
from foreblock.dev_chain.chain import DevChain
from foreblock.errors import NonceUsedAboveLatest, RejectedTransaction
from foreblock.ledger.reading.view import Ledger
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from foreblock.types import Transaction, address_of
from foreblock.upstream.rpc_client import Endpoint
from support.chains.paying_chain import PayingChain, client_of, paying_chain
from support.each_case import each_case
from support.payloads.dev_state import ALICE, BOB
from support.servers.asking import Asker, asker, error

KEY = b"\x11" * 32
HINT = "this service only reads; `foreblock follow --send URL` forwards transactions"
READ_ONLY = error(-32000, "sequencer not available") | {"data": {"hint": HINT}}


class Recorder:
    """A sequencer that accepts everything, or rejects everything."""

    def __init__(self, refusal: str = "") -> None:
        self.taken: list[tuple[bytes, bytes]] = []
        self._refusal = refusal

    async def submit(self, raw: bytes, sender: bytes) -> None:
        if self._refusal:
            raise RejectedTransaction(self._refusal)
        self.taken.append((raw, sender))

    def try_submit(self, transaction: Transaction) -> bool:  # noqa: ARG002, as declared
        return False

    def next_nonce(self, _sender: bytes) -> int:
        return 0


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PayingChain]:
    with paying_chain(tmp_path / "store") as found:
        yield found


def signed(kind: int = 2, chain_id: int = 31337, data: bytes = b"") -> bytes:
    message = Message(sender=ALICE, to=BOB, gas=21_000, data=data)
    return sign_transaction(message, kind, chain_id, 0, KEY).raw


def send(client: Asker, raw: bytes) -> object:
    return client.ask("eth_sendRawTransaction", "0x" + raw.hex())


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_transaction_is_handed_over_with_its_sender(chain: PayingChain, kind: int) -> None:
    pool, transaction = Recorder(), chain.signed(BOB, 1, type=kind)
    with client_of(chain, submissions=pool) as client:
        assert send(client, transaction.raw) == "0x" + transaction.hash.hex()
    assert pool.taken == [(transaction.raw, ALICE)]


def test_refusal_of_the_pool_is_told_in_its_words(chain: PayingChain) -> None:
    why = "insufficient funds for gas * price + value: balance 1, tx cost 2, overshot 1"
    with client_of(chain, submissions=Recorder(why)) as client:
        assert send(client, signed()) == error(-32000, why)


@each_case("method", ["eth_sendRawTransaction", "eth_sendRawTransactionSync"])
def test_a_nonce_that_only_a_pre_confirmed_transaction_has_is_explained(method: str) -> None:
    secret = dev_accounts(TEST_MNEMONIC, 1)[0].secret
    message = Message(
        sender=address_of(secret), to=BOB, value=1, gas=21_000, max_fee_per_gas=10**10
    )
    raw = "0x" + sign_transaction(message, 2, 31337, 0, secret).raw.hex()
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": [raw]}).encode()
    told = error(-32000, "nonce too low: next nonce 1, tx nonce 0")
    with (
        DevChain(mode="manual") as chain,
        chain.serve() as server,
        Endpoint(server.url) as endpoint,
    ):
        endpoint.request("eth_sendRawTransaction", [raw])
        chain.flashblock()
        above = json.loads(endpoint.exchange(body))["error"]
        assert above == told | {"data": {"hint": NonceUsedAboveLatest.hint}}
        chain.seal()
        assert json.loads(endpoint.exchange(body))["error"] == told


def test_chain_without_a_sequencer_says_so(chain: PayingChain, long_ledger: Ledger) -> None:
    with client_of(chain) as client:
        assert send(client, signed()) == READ_ONLY
    with asker(long_ledger) as client:
        raw = signed(chain_id=long_ledger.profile.chain_id)
        assert send(client, raw) == READ_ONLY


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"\x03\xc0", "transaction type not supported: tx type 3 not supported by this pool"),
        (b"\x7e\xc0", "transaction type not supported: tx type 126 not supported by this pool"),
        (
            signed(chain_id=1),
            "invalid sender: invalid chain id for signer: have 1 want 31337",
        ),
        (
            signed(data=bytes(131_072)),
            "oversized data: transaction size 131180, limit 131072",
        ),
    ],
    ids=["blob", "deposit", "other chain", "too large"],
)
def test_what_no_pool_takes_never_reaches_one(chain: PayingChain, raw: bytes, why: str) -> None:
    pool = Recorder()
    with client_of(chain, submissions=pool) as client:
        assert send(client, raw) == error(-32000, why)
    assert not pool.taken


@pytest.mark.parametrize("raw", [b"", b"\x05\xc0", b"\x02\xc0", signed()[:-1], signed() + b"\0"])
def test_what_is_no_transaction_is_said(chain: PayingChain, raw: bytes) -> None:
    pool = Recorder()
    with client_of(chain, submissions=pool) as client:
        answer = client.ask("eth_sendRawTransaction", "0x" + raw.hex())
    assert answer["code"] == -32000
    assert answer["message"].startswith("transaction cannot be decoded: ")
    assert not pool.taken


def test_text_that_is_no_data_is_a_bad_argument(chain: PayingChain) -> None:
    with client_of(chain, submissions=Recorder()) as client:
        assert client.ask("eth_sendRawTransaction", "12")["code"] == -32602
        assert client.ask("eth_sendRawTransaction")["code"] == -32602
        assert client.ask("eth_sendRawTransaction", None)["code"] == -32602
