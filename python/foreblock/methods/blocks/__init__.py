"""Blocks, and the transactions and receipts in them."""

from foreblock.methods.blocks.block_methods import BlockMethods, UncleMethods
from foreblock.methods.blocks.receipts import ReceiptCache, ReceiptMethods
from foreblock.methods.blocks.transactions import RawMethods, TransactionMethods
from foreblock.methods.sequencing import WaitingPool
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler
from foreblock.settings import Settings


def block_family(settings: Settings, scheduler: Scheduler, pool: WaitingPool) -> Family:
    """The methods of this folder."""
    cache = ReceiptCache()
    blocks = BlockMethods(settings, scheduler)
    transactions = TransactionMethods(cache, scheduler, pool)
    receipts = ReceiptMethods(cache, scheduler)
    uncles = UncleMethods(scheduler)
    raw = RawMethods(cache, scheduler)
    return Family(
        "Blocks, transactions and receipts",
        (
            Method(
                "eth_getBlockByNumber(block: BlockTag, fullTransactions: Boolean) -> Block?",
                blocks.get_block_by_number,
            ),
            Method(
                "eth_getBlockByHash(hash: Hash, fullTransactions: Boolean) -> Block?",
                blocks.get_block_by_hash,
            ),
            Method(
                "eth_getTransactionByHash(transactionHash: Hash) -> Transaction?",
                transactions.get_by_hash,
            ),
            Method(
                "eth_getTransactionBySenderAndNonce(sender: Address, "
                "nonce: Quantity) -> Transaction?",
                transactions.get_by_sender_and_nonce,
            ),
            Method(
                "eth_getTransactionByBlockNumberAndIndex(block: BlockTag, "
                "index: Quantity) -> Transaction?",
                transactions.by_index.by_number,
            ),
            Method(
                "eth_getTransactionByBlockHashAndIndex(blockHash: Hash, "
                "index: Quantity) -> Transaction?",
                transactions.by_index.by_hash,
            ),
            Method(
                "eth_getBlockTransactionCountByNumber(block: BlockTag) -> Quantity?",
                transactions.counting.by_number,
            ),
            Method(
                "eth_getBlockTransactionCountByHash(blockHash: Hash) -> Quantity?",
                transactions.counting.by_hash,
            ),
            Method(
                "eth_getTransactionReceipt(transactionHash: Hash) -> Receipt?",
                receipts.get_transaction_receipt,
            ),
            Method(
                "eth_getBlockReceipts(block: BlockParameter) -> Receipt[]?",
                receipts.get_block_receipts,
            ),
            Method(
                "eth_getUncleCountByBlockNumber(block: BlockTag) -> Quantity?",
                uncles.counting.by_number,
            ),
            Method(
                "eth_getUncleCountByBlockHash(blockHash: Hash) -> Quantity?",
                uncles.counting.by_hash,
            ),
            Method(
                "eth_getUncleByBlockNumberAndIndex(block: BlockTag, index: Quantity) -> Uncle?",
                uncles.by_index.by_number,
            ),
            Method(
                "eth_getUncleByBlockHashAndIndex(blockHash: Hash, index: Quantity) -> Uncle?",
                uncles.by_index.by_hash,
            ),
            Method(
                "eth_getRawTransactionByHash(transactionHash: Hash) -> Data",
                raw.get_transaction,
            ),
            Method(
                "eth_getRawTransactionByBlockNumberAndIndex(block: BlockTag, "
                "index: Quantity) -> Data",
                raw.by_index.by_number,
            ),
            Method(
                "eth_getRawTransactionByBlockHashAndIndex(blockHash: Hash, "
                "index: Quantity) -> Data",
                raw.by_index.by_hash,
            ),
            Method("debug_getRawHeader(block: BlockParameter) -> Data", raw.get_header),
            Method("debug_getRawBlock(block: BlockParameter) -> Data", raw.get_block),
            Method("debug_getRawReceipts(block: BlockParameter) -> Data[]", raw.get_receipts),
            Method("debug_getRawTransaction(transactionHash: Hash) -> Data", raw.get_transaction),
        ),
    )
