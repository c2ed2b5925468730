"""The methods, by their names on the wire.

Each takes a view and the raw parameters and gives the JSON text of its result, at once or as an
awaitable, or raises. Long texts come in pieces. Nothing here knows envelopes, error codes or
HTTP.
"""

from collections.abc import Awaitable, Callable

from msgspec import Raw

from foreblock.ledger.reading.view import LedgerView
from foreblock.methods import node
from foreblock.methods.block_places import BlockPlaces
from foreblock.methods.blocks import BlockMethods
from foreblock.methods.calls import CallMethods
from foreblock.methods.estimates import EstimateMethods
from foreblock.methods.fees import FeeMethods
from foreblock.methods.options import Options
from foreblock.methods.receipts import ReceiptMethods
from foreblock.methods.sending import NoSequencer, SendMethods, Submissions
from foreblock.methods.simulate import SimulateMethods
from foreblock.methods.state import StateMethods
from foreblock.methods.transactions import TransactionMethods
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler

Method = Callable[[LedgerView, Raw], bytes | Awaitable[Text]]


def make_methods(
    options: Options,
    scheduler: Scheduler,
    submissions: Submissions | None = None,
) -> dict[str, Method]:
    """The table of one network; without submissions it refuses transactions."""
    submissions = submissions or NoSequencer()
    places = BlockPlaces()
    blocks = BlockMethods(options, scheduler)
    state = StateMethods(options, submissions)
    transactions = TransactionMethods(places, scheduler)
    receipts = ReceiptMethods(options, places, scheduler)
    fees = FeeMethods(scheduler)
    return {
        "eth_getBlockByNumber": blocks.get_block_by_number,
        "eth_getBalance": state.get_balance,
        "eth_call": CallMethods(options, scheduler).call,
        "eth_simulateV1": SimulateMethods(options, scheduler).simulate,
        "eth_getBlockByHash": blocks.get_block_by_hash,
        "eth_getTransactionByHash": transactions.get_by_hash,
        "eth_getTransactionByBlockNumberAndIndex": transactions.get_by_number_and_index,
        "eth_getTransactionByBlockHashAndIndex": transactions.get_by_hash_and_index,
        "eth_getBlockTransactionCountByNumber": transactions.get_count_by_number,
        "eth_getBlockTransactionCountByHash": transactions.get_count_by_hash,
        "eth_getTransactionReceipt": receipts.get_transaction_receipt,
        "eth_getBlockReceipts": receipts.get_block_receipts,
        "eth_getTransactionCount": state.get_transaction_count,
        "eth_getCode": state.get_code,
        "eth_getStorageAt": state.get_storage_at,
        "eth_estimateGas": EstimateMethods(options, scheduler).estimate_gas,
        "eth_gasPrice": fees.gas_price,
        "eth_maxPriorityFeePerGas": fees.max_priority_fee_per_gas,
        "eth_feeHistory": fees.fee_history,
        "eth_blobBaseFee": fees.blob_base_fee,
        "eth_sendRawTransaction": SendMethods(submissions).send_raw_transaction,
        "eth_blockNumber": node.block_number,
        "eth_chainId": node.chain_id,
        "eth_accounts": node.accounts,
        "eth_syncing": node.syncing,
        "net_version": node.network_version,
        "net_listening": node.listening,
        "web3_clientVersion": node.client_version,
        "debug_getRawBlock": blocks.get_raw_block,
    }
