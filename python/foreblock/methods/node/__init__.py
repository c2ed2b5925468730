"""The node and its chain: fees, ids, versions."""

from foreblock.methods.node import about
from foreblock.methods.node.about import HashMethods, capabilities, config, supported_capabilities
from foreblock.methods.node.fees import FeeMethods, PriorityFees
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler


def node_family(
    scheduler: Scheduler, priority_fees: PriorityFees, identity: about.Identity
) -> Family:
    """The methods of this folder."""
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
            Method("eth_blockNumber() -> Quantity", about.block_number),
            Method("eth_chainId() -> Quantity", about.chain_id),
            Method("eth_accounts() -> Address[]", identity.accounts),
            Method("eth_coinbase() -> Address", about.coinbase),
            Method("eth_config() -> ForkConfigs", config),
            Method("eth_capabilities() -> Capabilities", capabilities),
            Method("eth_syncing() -> Boolean", about.syncing),
            Method("eth_mining() -> Boolean", about.mining),
            Method("eth_hashrate() -> Quantity", about.hash_rate),
            Method("eth_protocolVersion() -> Quantity", about.protocol_version),
            Method("net_version() -> Text", about.network_version),
            Method("net_listening() -> Boolean", about.listening),
            Method("net_peerCount() -> Quantity", about.peer_count),
            Method("web3_clientVersion() -> Text", identity.client_version),
            Method("web3_sha3(data: Data) -> Hash", hashing.sha3),
            Method("op_supportedCapabilities() -> Text[]", supported_capabilities),
            Method("foreblock_snapshot() -> Snapshot", about.snapshot),
        ),
    )
