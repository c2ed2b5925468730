"""Filters: changes of the chain, for clients that poll."""

from foreblock.methods.filters.filter_methods import FilterMethods
from foreblock.methods.filters.filter_table import FilterTable
from foreblock.methods.logs.logs import LogMethods
from foreblock.methods.options import Options
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler


def filter_family(options: Options, scheduler: Scheduler, table: FilterTable) -> Family:
    """The methods of this folder."""
    methods = FilterMethods(scheduler, table, LogMethods(options, scheduler).get_logs)
    return Family(
        "Filters",
        (
            Method("eth_newFilter(filter: LogFilter) -> FilterId", methods.new_filter),
            Method("eth_newBlockFilter() -> FilterId", methods.new_block_filter),
            Method(
                "eth_newPendingTransactionFilter(fullTransactions?: Boolean) -> FilterId",
                methods.new_transaction_filter,
            ),
            Method("eth_getFilterChanges(id: FilterId) -> FilterChanges", methods.get_changes),
            Method("eth_getFilterLogs(id: FilterId) -> Log[]", methods.get_logs),
            Method("eth_uninstallFilter(id: FilterId) -> Boolean", methods.uninstall),
        ),
    )
