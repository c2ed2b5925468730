"""Methods about the chain and the service, such as eth_chainId, eth_config and web3_sha3."""

import json
from collections.abc import Awaitable
from functools import cache, partial
from typing import Final

import msgspec
from msgspec import Raw

import foreblock
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.fork_config import ForkConfig, fork_configs
from foreblock.ledger.storage.chain_head import stated_forks
from foreblock.methods.fee_methods import FeeMethods, PriorityFees
from foreblock.methods.params import Params, data, read_in_turn, reader, take_none
from foreblock.methods.sequencing import Keys, write_accounts
from foreblock.methods.shapes import members, write_data, write_quantity
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps
from foreblock.types import keccak256


@cache
def client() -> str:
    """Name and version of this software; looking that up takes some milliseconds."""
    return f"foreblock/v{foreblock.__version__}"


def chain_id(view: LedgerView, raw: Raw) -> bytes:
    """The chain's number, by which transactions are bound to it (EIP-155)."""
    take_none(raw)
    return b'"0x%x"' % view.profile.chain_id


def network_version(view: LedgerView, raw: Raw) -> bytes:
    """The chain id in decimal, as other nodes return it."""
    take_none(raw)
    return b'"%d"' % view.profile.chain_id


def listening(_view: LedgerView, raw: Raw) -> bytes:
    """True: a service that answers is reachable."""
    take_none(raw)
    return b"true"


class Identity:
    """Methods about the service and its accounts."""

    def __init__(self, keys: Keys, client_version: str = "") -> None:
        """An empty `client_version` is the software's own."""
        self._keys: Final = keys
        self._client: Final = msgspec.json.encode(client_version or client())

    def client_version(self, _view: LedgerView, raw: Raw) -> bytes:
        """Name and version of this software."""
        take_none(raw)
        return self._client

    def accounts(self, view: LedgerView, raw: Raw) -> bytes:
        """The accounts that the service signs for; only development chains have some."""
        take_none(raw)
        return write_accounts(view, self._keys)


def block_number(view: LedgerView, raw: Raw) -> bytes:
    """The number of the last sealed block."""
    take_none(raw)
    return b'"0x%x"' % view.latest.number


def syncing(_view: LedgerView, raw: Raw) -> bytes:
    """False: there is nothing to catch up with."""
    take_none(raw)
    return b"false"


def protocol_version(_view: LedgerView, raw: Raw) -> bytes:
    """The version of the wire protocol that other nodes speak; there are no peers here."""
    take_none(raw)
    return b'"0x44"'


def mining(_view: LedgerView, raw: Raw) -> bytes:
    """False: nothing is mined."""
    take_none(raw)
    return b"false"


def hash_rate(_view: LedgerView, raw: Raw) -> bytes:
    """Zero: nothing is mined."""
    take_none(raw)
    return b'"0x0"'


def snapshot(view: LedgerView, raw: Raw) -> bytes:
    """The commit that this request and all others of its batch see, with its heads."""
    take_none(raw)
    latest, pending, base, place = view.latest, view.pending, view.base, b"null"
    if pending is not None:
        place = b'{"number":"0x%x","index":"0x%x","hash":%b}' % (
            pending.number, pending.index, write_data(pending.hash),
        )  # fmt: skip
    heads = b'"latest":%b,"pending":%b' % (_head(latest.number, latest.hash), place)
    if view.followed and not base.is_complete:
        trust = view.trust.encode()
        heads += b',"base":%b,"trust":"%b"' % (_head(base.number, base.hash), trust)
    return b'{"commit":"0x%x",%b}' % (view.commit, heads)


def _head(number: int, block_hash: bytes) -> bytes:
    return b'{"number":"0x%x","hash":%b}' % (number, write_data(block_hash))


def coinbase(view: LedgerView, raw: Raw) -> bytes:
    """The address that gets the fees of the newest block that is shown."""
    take_none(raw)
    return write_data(view.shown.header.beneficiary)


def peer_count(_view: LedgerView, raw: Raw) -> bytes:
    """Zero: blocks come from a source and not from peers."""
    take_none(raw)
    return b'"0x0"'


def capabilities(view: LedgerView, raw: Raw) -> bytes:
    """The oldest block of each kind of data, for clients that choose among nodes."""
    take_none(raw)
    head = {b"number": write_quantity(view.latest.number), b"hash": write_data(view.latest.hash)}
    state = _states(view)
    everything = _from(0)  # bodies, receipts and their index are never deleted
    return b"{%b}" % members(
        {
            b"head": b"{%b}" % members(head),
            b"state": state,
            b"tx": everything,
            b"logs": everything,
            b"receipts": everything,
            b"blocks": everything,
            b"stateproofs": state,
        }
    )


def _states(view: LedgerView) -> bytes:
    """States from the oldest on; where older ones were deleted, how many are kept."""
    earliest = view.behind.earliest
    if earliest == 0:
        return _from(0)
    kept = write_quantity(view.latest.number - earliest + 1)
    return _from(earliest, b',"deleteStrategy":{"type":"window","retentionBlocks":%b}' % kept)


def _from(oldest: int, strategy: bytes = b"") -> bytes:
    return b'{"disabled":false,"oldestBlock":%b%b}' % (write_quantity(oldest), strategy)


def supported_capabilities(view: LedgerView, raw: Raw) -> bytes:
    """The extensions of the OP stack that this chain is served with."""
    take_none(raw)
    return b"[]" if view.profile.optimism is None else b'["flashblocksv1"]'


def config(view: LedgerView, raw: Raw) -> bytes:
    """The forks of the chain: precompiles, system contracts, blobs, and their ids."""
    take_none(raw)
    genesis = view.resolve(0).header
    found = fork_configs(
        view.profile, stated_forks(view.stored), genesis, view.latest.header.timestamp
    )
    chain_id = view.profile.chain_id
    return json.dumps(
        {
            "current": _fork_fields(found.current, chain_id),
            "next": _fork_fields(found.next, chain_id),
            "last": _fork_fields(found.last, chain_id),
        },
        separators=(",", ":"),
    ).encode()


def _fork_fields(fork: ForkConfig | None, chain_id: int) -> dict[str, object] | None:
    if fork is None:
        return None
    blobs = fork.blobs
    return {
        "activationTime": fork.activation_time,
        "blobSchedule": None
        if blobs is None
        else {
            "target": blobs.target,
            "max": blobs.maximum,
            "baseFeeUpdateFraction": blobs.update_fraction,
        },
        "chainId": f"{chain_id:#x}",
        "forkId": f"0x{fork.fork_id.hex()}",
        "precompiles": {name: f"0x{each.hex()}" for name, each in fork.precompiles.items()},
        "systemContracts": {
            name: f"0x{each.hex()}" for name, each in fork.system_contracts.items()
        },
    }


class DataParams(Params):
    """The arguments of web3_sha3."""

    data: str


_read_data = reader(DataParams)


class HashMethods:
    """The method that hashes."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def sha3(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The Keccak-256 hash of the data."""
        return self._scheduler.run(partial(_hashed, raw), view.client)


def _hashed(raw: Raw, _pace: Pace) -> Steps[bytes]:
    return (yield from read_in_turn(_hash, raw))


def _hash(raw: Raw) -> bytes:
    return write_data(keccak256(data(_read_data(raw).data, 0)))


def node_family(scheduler: Scheduler, priority_fees: PriorityFees, identity: Identity) -> Family:
    """The methods of fees, chain and node."""
    fees = FeeMethods(scheduler, priority_fees)
    hashing = HashMethods(scheduler)
    return Family(
        "Fees, chain and node",
        (
            Method("eth_gasPrice() -> Quantity", fees.gas_price),
            Method("eth_maxPriorityFeePerGas() -> Quantity", fees.max_priority_fee_per_gas),
            Method(
                "eth_feeHistory(blockCount: Count, newestBlock: BlockTag, "
                "rewardPercentiles?: Number[]) -> FeeHistory",
                fees.fee_history,
            ),
            Method("eth_baseFee() -> Quantity?", fees.base_fee),
            Method("eth_blobBaseFee() -> Quantity", fees.blob_base_fee),
            Method("eth_blockNumber() -> Quantity", block_number),
            Method("eth_chainId() -> Quantity", chain_id),
            Method("eth_accounts() -> Address[]", identity.accounts),
            Method("eth_coinbase() -> Address", coinbase),
            Method("eth_config() -> ForkConfigs", config),
            Method("eth_capabilities() -> Capabilities", capabilities),
            Method("eth_syncing() -> Boolean", syncing),
            Method("eth_mining() -> Boolean", mining),
            Method("eth_hashrate() -> Quantity", hash_rate),
            Method("eth_protocolVersion() -> Quantity", protocol_version),
            Method("net_version() -> Text", network_version),
            Method("net_listening() -> Boolean", listening),
            Method("net_peerCount() -> Quantity", peer_count),
            Method("web3_clientVersion() -> Text", identity.client_version),
            Method("web3_sha3(data: Data) -> Hash", hashing.sha3),
            Method("op_supportedCapabilities() -> Text[]", supported_capabilities),
            Method("foreblock_snapshot() -> Snapshot", snapshot),
        ),
    )
