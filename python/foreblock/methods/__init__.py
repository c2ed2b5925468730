"""The methods, by their names on the wire.

Each is a function of a view and the raw parameters that gives the JSON text of its
result, at once or later, or raises. Nothing here knows of envelopes, codes or HTTP.
"""

from collections.abc import Awaitable, Callable

from msgspec import Raw

from foreblock.ledger.view import LedgerView
from foreblock.methods import node
from foreblock.methods.blocks import BlockMethods
from foreblock.methods.calls import CallMethods
from foreblock.methods.options import Options
from foreblock.methods.placement import Placement
from foreblock.methods.simulate import SimulateMethods
from foreblock.methods.simulations import Simulations
from foreblock.methods.state import StateMethods

Method = Callable[[LedgerView, Raw], bytes | Awaitable[bytes]]


def make_methods(
    options: Options, placement: Placement, simulations: Simulations
) -> dict[str, Method]:
    """The table of one service."""
    blocks = BlockMethods(options)
    return {
        "eth_getBlockByNumber": blocks.get_block_by_number,
        "eth_getBalance": StateMethods(options).get_balance,
        "eth_call": CallMethods(options, placement).call,
        "eth_simulateV1": SimulateMethods(options, simulations).simulate,
        "eth_getBlockByHash": blocks.get_block_by_hash,
        "eth_blockNumber": node.block_number,
        "eth_chainId": node.chain_id,
        "net_version": node.network_version,
        "web3_clientVersion": node.client_version,
    }
