"""Transactions that are prepared, sent and wait."""

from functools import partial

from foreblock.methods.blocks.receipts import ReceiptCache, find_receipt
from foreblock.methods.events.commit_watch import CommitWatch
from foreblock.methods.fee_methods import PriorityFees
from foreblock.methods.pool.filling import FillMethods
from foreblock.methods.pool.raw_sending import SendMethods, SyncSendMethods
from foreblock.methods.pool.txpool import PoolMethods, UnsealedTransactions
from foreblock.methods.sequencing import Submissions, WaitingPool
from foreblock.methods.table import Family, Method, command
from foreblock.scheduling.scheduler import Scheduler
from foreblock.settings import Settings


def pool_family(
    settings: Settings,
    scheduler: Scheduler,
    submissions: Submissions,
    pool: WaitingPool,
    priority_fees: PriorityFees,
    commits: CommitWatch,
) -> Family:
    """The methods of this folder."""
    cache = ReceiptCache()
    waiting = PoolMethods(pool, scheduler, UnsealedTransactions(cache))
    sync = SyncSendMethods(
        settings, submissions, partial(find_receipt, cache), scheduler.budget, commits
    )
    return Family(
        "Sending transactions and the pool",
        (
            command(
                "eth_sendRawTransaction(transaction: Data) -> Hash",
                SendMethods(submissions).send_raw_transaction,
            ),
            Method(
                "eth_sendRawTransactionSync(transaction: Data, timeout?: Milliseconds) -> Receipt",
                sync.send,
                once=True,
            ),
            Method(
                "eth_fillTransaction(transaction: Call) -> FilledTransaction",
                FillMethods(settings, scheduler, submissions, priority_fees).fill,
            ),
            Method("txpool_status() -> PoolStatus", waiting.status),
            Method("txpool_content() -> PoolContent", waiting.content),
            Method("txpool_contentFrom(address: Address) -> PoolContent", waiting.content_from),
            Method("txpool_inspect() -> PoolTexts", waiting.inspect),
            Method(
                "base_transactionStatus(transactionHash: Hash) -> TransactionStatus",
                waiting.transaction_status,
            ),
        ),
    )
