"""Methods that change something besides what they answer: they run once for each request.

Where state is fetched, a body runs again until nothing is missing (`rpc.fetching`). All other
methods only read, and may run any number of times.
"""

from typing import Final

RUN_ONCE: Final = frozenset(
    {
        "eth_getFilterChanges",
        "eth_newBlockFilter",
        "eth_newFilter",
        "eth_newPendingTransactionFilter",
        "eth_sendRawTransaction",
        "eth_sendRawTransactionSync",
        "eth_subscribe",
        "eth_uninstallFilter",
        "eth_unsubscribe",
    }
)
