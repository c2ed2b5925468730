"""Accounts of development chains, their pool, and the node: the methods, by family."""

from dataclasses import replace
from functools import partial

from foreblock.methods.blocks.receipts import ReceiptCache, find_receipt
from foreblock.methods.dev.dropping import DropMethods
from foreblock.methods.dev.impersonation import ImpersonationMethods
from foreblock.methods.dev.node_info import NodeInfoMethods, PrintingMethods
from foreblock.methods.dev.signing import SignMethods
from foreblock.methods.dev.unlocked import UnlockedMethods
from foreblock.methods.events.commit_watch import CommitWatch
from foreblock.methods.node.fees import PriorityFees
from foreblock.methods.pool.filling import FillMethods
from foreblock.methods.pool.sync_sending import SyncSendMethods
from foreblock.methods.sequencing import Sequencing
from foreblock.methods.table import Family, Method, command
from foreblock.scheduling.scheduler import Scheduler
from foreblock.settings import Settings


def account_families(
    settings: Settings,
    scheduler: Scheduler,
    sequencing: Sequencing,
    priority_fees: PriorityFees,
    commits: CommitWatch,
) -> tuple[Family, ...]:
    """The methods about accounts of a chain that takes commands; none of others."""
    submissions, commands, keys = sequencing.submissions, sequencing.commands, sequencing.keys
    if commands is None:
        return ()
    find = partial(find_receipt, ReceiptCache())
    unlocked = UnlockedMethods(
        keys,
        commands,
        submissions,
        filling_at_pending(settings, scheduler, sequencing, priority_fees),
        SyncSendMethods(settings, submissions, find, scheduler.budget, commits),
        scheduler,
    )
    return (
        _sending(unlocked, SignMethods(keys, scheduler)),
        _impersonation(ImpersonationMethods(keys, commands), unlocked),
        _pool(DropMethods(commands)),
        _node(
            NodeInfoMethods(scheduler, priority_fees, sequencing.order, settings.client_version),
            PrintingMethods(commands),
        ),
    )


def filling_at_pending(
    settings: Settings, scheduler: Scheduler, sequencing: Sequencing, priority_fees: PriorityFees
) -> FillMethods:
    """The filling of transactions of the accounts: they build on the block in progress."""
    at_pending = replace(settings, view="preconfirmed")
    return FillMethods(at_pending, scheduler, sequencing.submissions, priority_fees)


def _sending(unlocked: UnlockedMethods, signing: SignMethods) -> Family:
    return Family(
        "Development chains: sending and signing",
        (
            Method(
                "eth_sendTransaction(transaction: Call) -> Hash",
                unlocked.send,
                ("wallet_sendTransaction",),
            ),
            Method(
                "eth_sendTransactionSync(transaction: Call, timeout?: Milliseconds) -> Receipt",
                unlocked.send_sync,
            ),
            Method("eth_signTransaction(transaction: Call) -> Data", unlocked.sign),
            Method("eth_sign(address: Address, data: Data) -> Data", signing.sign),
            Method("personal_sign(data: Data, address: Address) -> Data", signing.personal_sign),
            Method(
                "eth_signTypedData_v4(address: Address, typedData: TypedData) -> Data",
                signing.sign_typed_data,
                ("eth_signTypedData", "eth_signTypedData_v3"),
            ),
        ),
    )


def _impersonation(accounts: ImpersonationMethods, unlocked: UnlockedMethods) -> Family:
    return Family(
        "Development chains: accounts",
        (
            Method(
                "eth_requestAccounts() -> Address[]",
                accounts.request_accounts,
                ("personal_listAccounts",),
            ),
            command(
                "anvil_impersonateAccount(address: Address) -> Null",
                accounts.impersonate,
                ("hardhat_impersonateAccount",),
            ),
            command(
                "anvil_stopImpersonatingAccount(address: Address) -> Null",
                accounts.stop,
                ("hardhat_stopImpersonatingAccount",),
            ),
            command(
                "anvil_autoImpersonateAccount(enabled: Boolean) -> Null",
                accounts.impersonate_all,
                ("hardhat_autoImpersonateAccount",),
            ),
            Method(
                "eth_sendUnsignedTransaction(transaction: Call) -> Hash", unlocked.send_unsigned
            ),
            command(
                "evm_addAccount(address: Address, passphrase?: Text) -> Boolean",
                accounts.add_account,
                ("evm_unlockUnknownAccount",),
            ),
            command(
                "evm_removeAccount(address: Address, passphrase?: Text) -> Boolean",
                accounts.remove_account,
                ("evm_lockUnknownAccount",),
            ),
            Method(
                "personal_unlockAccount"
                "(address: Address, passphrase?: Text, duration?: Count) -> Boolean",
                accounts.unlock,
            ),
        ),
    )


def _pool(dropping: DropMethods) -> Family:
    return Family(
        "Development chains: the pool",
        (
            command("anvil_dropTransaction(transactionHash: Hash) -> Hash?", dropping.drop),
            command(
                "hardhat_dropTransaction(transactionHash: Hash) -> Boolean",
                dropping.drop_as_hardhat,
            ),
            command(
                "anvil_dropAllTransactions() -> Null",
                dropping.drop_all,
                ("hardhat_dropAllTransactions",),
            ),
            command(
                "anvil_removePoolTransactions(address: Address) -> Null",
                dropping.drop_of_sender,
                ("hardhat_removePoolTransactions",),
            ),
        ),
    )


def _node(node: NodeInfoMethods, printing: PrintingMethods) -> Family:
    return Family(
        "Development chains: about the node",
        (
            Method("anvil_nodeInfo() -> NodeInfo", node.node_info),
            Method("anvil_metadata() -> Metadata", node.metadata, ("hardhat_metadata",)),
            Method("anvil_getGenesisTime() -> Integer", node.genesis_time),
            Method("eth_networkId() -> Text", node.network_id),
            command(
                "anvil_setLoggingEnabled(enabled: Boolean) -> Null",
                printing.set_logging,
                ("hardhat_setLoggingEnabled",),
            ),
            command("anvil_enableTraces(enabled?: Boolean) -> Null", printing.enable_traces),
            Method("anvil_setChainId(chainId: Count) -> Null", node.set_chain_id),
            Method("anvil_setRpcUrl(url: Text) -> Null", node.set_rpc_url, ("hardhat_setRpcUrl",)),
        ),
    )
