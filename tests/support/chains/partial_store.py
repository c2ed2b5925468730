"""A store that begins at the latest block of another one, without its state.

`WholeNetwork` stands in for the fetching process: it answers from the complete store with proofs,
as upstreams do.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from foreblock._engine import Proof, Store
from foreblock.follow.fetch_result import ClaimedAccount, ClaimedProof, ClaimedSlot, FetchResult
from foreblock.follow.learned_state import pack_values
from foreblock.ledger.reading.blocks import ByHash
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import FirstBlock, partials_of_sealed
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.types import decode_transaction, keccak256

EPOCH = 1
EMPTY_CODE = keccak256(b"")


def begin_at_latest(
    whole: Ledger, folder: Path, epoch: int = EPOCH, *, has_body: bool = True
) -> None:
    """Create a store of the latest block alone, or of its header."""
    store = Store(str(folder), write=True)
    with closing(whole.view()) as view:
        header, number = view.latest.header, view.latest.number
        assert not partials_of_sealed(view.stored, number), "its body has a separate row"
        batch = store.batch()
        body = rows.decode_body(view.row(rows.body_key(number), view.latest))
        index = {rows.block_index_key(header.hash): number.to_bytes(8)}
        for place, raw in enumerate(body.transactions if has_body else ()):
            key = rows.transaction_index_key(decode_transaction(raw).hash)
            index[key] = rows.encode_transaction_entry(number, place)
        batch.begin_at(number, header.hash, header.state_root, epoch, index)
        of_body = (rows.body_key, rows.receipts_key, rows.senders_key)
        for key_of in (rows.header_key, *(of_body if has_body else ())):
            batch.put(key_of(number), view.row(key_of(number), view.latest))
        if not has_body:
            batch.put(*FirstBlock(number, has_body=False).row)
        config = view.stored.row(rows.CONFIG)
        assert config is not None
        batch.put(rows.CONFIG, config)
    store.commit(batch)
    store.close()


def proof_json(address: str, slots: Sequence[int], proof: Proof) -> dict[str, Any]:
    """A proof in the JSON form of nodes."""

    def shown(nodes: Sequence[bytes]) -> list[str]:
        return ["0x" + node.hex() for node in nodes]

    account, values = proof.account, [proof.slot(at) for at in range(len(slots))]
    return {
        "address": address,
        "accountProof": shown(proof.account_nodes),
        "balance": hex(account.balance if account else 0),
        "codeHash": "0x" + (account.code_hash if account else EMPTY_CODE).hex(),
        "nonce": hex(account.nonce if account else 0),
        "storageHash": "0x" + proof.storage_root.hex(),
        "storageProof": [
            {"key": f"0x{slot:064x}", "value": hex(value), "proof": shown(nodes)}
            for slot, (value, nodes) in zip(slots, values, strict=True)
        ],
    }


class WholeNetwork:
    """Answers state requests from a ledger that has the whole state."""

    def __init__(self, whole: Ledger, *, most: int = 1 << 30) -> None:
        """An answer contains at most this many of the requested keys."""
        self.whole = whole
        self.most = most
        self.asked: list[StateKeys] = []
        self.epoch = EPOCH
        self.failure: Exception | None = None  # for all requests
        self.failures: list[Exception] = []  # for the next requests
        self.proofs_at: list[str] = []  # accounts for which a node was asked for a proof
        self.change: Callable[[Any], Any] = lambda answer: answer  # to the answer of a node

    async def ask(self, epoch: int, keys: bytes, seconds: float) -> bytes:
        """Return the packed response to a request."""
        assert seconds > 0
        wanted = StateKeys.unpack(keys)
        self.asked.append(wanted)
        assert wanted, "nothing is requested"
        if self.failures:
            raise self.failures.pop()
        if self.failure is not None:
            raise self.failure
        assert epoch == self.epoch
        with closing(self.whole.view()) as view:
            return self.found(view, self._some(wanted))

    async def ask_upstream(self, method: str, params: bytes) -> bytes:
        """Return a node's response to a request for a proof at a block."""
        assert method == "eth_getProof", method
        address, keys, block = json.loads(params)
        self.proofs_at.append(address)
        with closing(self.whole.view()) as view:
            by_hash = isinstance(block, dict)
            name = ByHash(bytes.fromhex(block["blockHash"][2:])) if by_hash else int(block, 16)
            found = view.resolve(name)
            slots = [int(key, 16) for key in keys]
            proof = view.state_of_header(found).prove(bytes.fromhex(address[2:]), slots)
        return json.dumps(self.change(proof_json(address, slots, proof))).encode()

    def found(self, view: LedgerView, wanted: StateKeys) -> bytes:
        """Find the requested values with their proofs."""
        found, state = FetchResult(), view.state(view.latest)
        for address in sorted(wanted.accounts | wanted.slots.keys()):
            found.put_proof(self.proof(view, address, sorted(wanted.slots.get(address, ()))))
        for code_hash, home in wanted.codes.items():
            assert home, "the account of a code is known, since a run came to it"
            assert keccak256(state.code(home)) == code_hash
            found.put_codes([state.code(home)])
        for address in wanted.codes_of:
            found.put_code(address, state.code(address))
        blocks = {each: view.resolve(each).hash for each in wanted.blocks}
        return pack_values(found, blocks)

    def proof(self, view: LedgerView, address: bytes, slots: list[int]) -> ClaimedProof:
        proof = view.state_of_header(view.latest).prove(address, slots)
        account = proof.account
        claimed = ClaimedAccount(
            account.nonce if account else 0,
            account.balance if account else 0,
            account.code_hash if account else EMPTY_CODE,
            proof.storage_root,
        )
        values = [proof.slot(position) for position in range(len(slots))]
        proven = tuple(
            ClaimedSlot(slot, value, tuple(nodes))
            for slot, (value, nodes) in zip(slots, values, strict=True)
        )
        return ClaimedProof(address, claimed, tuple(proof.account_nodes), proven, "whole")

    def _some(self, wanted: StateKeys) -> StateKeys:
        if len(wanted) <= self.most:
            return wanted
        accounts = sorted(wanted.accounts)[: self.most]
        slots = {} if accounts else dict(list(wanted.slots.items())[: self.most])
        codes = {} if accounts or slots else dict(list(wanted.codes.items())[: self.most])
        blocks = frozenset() if accounts or slots or codes else wanted.blocks
        codes_of = wanted.codes_of & frozenset(accounts)
        return StateKeys(frozenset(accounts), slots, codes, codes_of, blocks)
