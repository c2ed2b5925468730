"""A JSON-RPC endpoint that serves only the witnesses of real blocks.

It has the state after each block whose header is known: that of the parents, and of blocks whose
child is known too, within the witnesses. Everything else is an error and never a value. `latest` is
the head, which `witness_setHead` moves.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from follow.witness_files import Witnesses, data
from follow.witness_trie import NO_ACCOUNT, Account, Proven, Unwitnessed, look_up
from foreblock._engine import keccak256
from support.payloads.merkle import decode
from support.servers.toy_endpoint import ToyResponse, answered, http_endpoint, refusal

Json = Any
MOST_KEYS = 1024
METHODS = {
    "eth_chainId": "chain_id",
    "net_version": "net_version",
    "web3_clientVersion": "client_version",
    "eth_blockNumber": "block_number",
    "witness_setHead": "set_head",
    "eth_getBlockByNumber": "get_block_by_number",
    "eth_getBlockByHash": "get_block_by_hash",
    "debug_executionWitness": "execution_witness",
    "debug_dbGet": "db_get",
    "eth_getProof": "get_proof",
    "eth_getBalance": "get_balance",
    "eth_getTransactionCount": "get_transaction_count",
    "eth_getCode": "get_code",
    "eth_getStorageAt": "get_storage_at",
    "eth_getStorageValues": "get_storage_values",
}
TAGS = ("latest", "safe", "finalized", "pending")


class WitnessUpstream:
    """The methods."""

    def __init__(self, witnesses: Witnesses, head: int) -> None:
        self._known = witnesses
        self._head = head

    def result(self, method: str, params: Json) -> Json:
        """Return the result of a method; raises `ToyError`."""
        try:
            return getattr(self, METHODS.get(method, "unknown"))(*params)
        except Unwitnessed as why:
            message = f"missing trie node {why} (path ) state is not available"
            raise refusal(-32000, message) from why
        except (TypeError, ValueError, KeyError) as why:
            raise refusal(-32602, f"invalid argument: {why}") from why

    def unknown(self, *_: Json) -> Json:
        raise refusal(-32601, "the method does not exist/is not available")

    # --- Blocks ----------------------------------------------------------------------------

    def chain_id(self) -> str:
        return hex(self._known.chain["l2_chain_id"])

    def net_version(self) -> str:
        return str(self._known.chain["l2_chain_id"])

    def client_version(self) -> str:
        return "witnesses/1"

    def block_number(self) -> str:
        return hex(self._head)

    def set_head(self, number: int) -> str:
        if number not in self._known.numbers:
            raise refusal(-32000, "header not found")
        self._head = number
        return hex(number)

    def get_block_by_number(self, block: str, full: bool) -> Json:
        found = self._numbered(self._head if block in TAGS else int(block, 16))
        return None if found is None else self._known.block(found, full=full)

    def get_block_by_hash(self, hash: str, full: bool) -> Json:
        header = self._known.headers.get(data(hash))
        if header is None or int(header["number"], 16) > self._head:
            return None
        return self._known.block(data(hash), full=full)

    def execution_witness(self, block: str) -> Json:
        found = self._known.own.get(self._block(block), [])
        if not found:
            raise refusal(-32000, "no witness of this block")
        return {"state": ["0x" + each.hex() for each in found], "codes": [], "keys": [],
                "headers": []}  # fmt: skip

    def db_get(self, digest: str) -> str:
        """A trie node or a code by its hash, as in geth."""
        return "0x" + self._known.preimages[data(digest)].hex()

    def _numbered(self, number: int) -> bytes | None:
        return self._known.numbers.get(number) if number <= self._head else None

    def _block(self, block: Json) -> bytes:
        """The hash of the block named by a parameter."""
        if isinstance(block, dict):
            block = block.get("blockHash") or block["blockNumber"]
        if len(block) == 66:
            found = data(block) if data(block) in self._known.headers else None
        else:
            found = self._numbered(self._head if block in TAGS else int(block, 16))
        if found is None:
            raise refusal(-32000, "header not found")
        return found

    # --- State -----------------------------------------------------------------------------

    def _root(self, block: Json) -> bytes:
        return data(self._known.headers[self._block(block)]["stateRoot"])

    def _prove(self, root: bytes, key: bytes) -> Proven:
        return look_up(self._known.preimages, root, keccak256(key))

    def _account(self, address: str, block: Json) -> tuple[Account, Proven]:
        found = self._prove(self._root(block), data(address))
        return (Account.of(found.value) if found.value else NO_ACCOUNT), found

    def _slot(self, account: Account, slot: str) -> tuple[int, Proven]:
        found = self._prove(account.storage_root, int(slot, 16).to_bytes(32))
        value = decode(found.value) if found.value else b""
        assert isinstance(value, bytes)
        return int.from_bytes(value), found

    def get_proof(self, address: str, slots: list[str], block: Json = "latest") -> Json:
        if len(slots) > MOST_KEYS:
            raise refusal(-32602, f"too many keys (got {len(slots)}, at most {MOST_KEYS})")
        account, proof = self._account(address, block)
        return {
            "address": address,
            "nonce": hex(account.nonce),
            "balance": hex(account.balance),
            "codeHash": "0x" + account.code_hash.hex(),
            "storageHash": "0x" + account.storage_root.hex(),
            "accountProof": ["0x" + node.hex() for node in proof.nodes],
            "storageProof": [self._slot_proof(account, slot) for slot in slots],
        }

    def _slot_proof(self, account: Account, slot: str) -> Json:
        value, proof = self._slot(account, slot)
        nodes = ["0x" + node.hex() for node in proof.nodes]
        return {"key": slot, "value": hex(value), "proof": nodes}

    def get_balance(self, address: str, block: Json = "latest") -> str:
        return hex(self._account(address, block)[0].balance)

    def get_transaction_count(self, address: str, block: Json = "latest") -> str:
        return hex(self._account(address, block)[0].nonce)

    def get_code(self, address: str, block: Json = "latest") -> str:
        account = self._account(address, block)[0]
        if account.code_hash == NO_ACCOUNT.code_hash:
            return "0x"
        code = self._known.preimages.get(account.code_hash)
        if code is None:
            raise Unwitnessed(account.code_hash.hex())
        return "0x" + code.hex()

    def get_storage_at(self, address: str, slot: str, block: Json = "latest") -> str:
        return f"0x{self._slot(self._account(address, block)[0], slot)[0]:064x}"

    def get_storage_values(self, slots: dict[str, list[str]], block: Json = "latest") -> Json:
        return {
            address: [self.get_storage_at(address, slot, block) for slot in wanted]
            for address, wanted in slots.items()
        }


@contextmanager
def witness_upstream(folder: Path, head: int | None = None) -> Iterator[str]:
    """The real blocks of a folder; `latest` is `head`, or the lowest block."""
    known = Witnesses(folder)
    upstream = WitnessUpstream(known, min(known.numbers) if head is None else head)
    with http_endpoint(
        lambda request: ToyResponse(body=answered(upstream.result, request.body))
    ) as url:
        yield url
