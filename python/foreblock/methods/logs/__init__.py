"""Logs of blocks."""

from foreblock.methods.logs.logs import LogMethods
from foreblock.methods.options import Options
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler


def log_family(options: Options, scheduler: Scheduler) -> Family:
    """The methods of this folder."""
    logs = LogMethods(options, scheduler)
    return Family("Logs", (Method("eth_getLogs(filter: LogFilter) -> Log[]", logs.get_logs),))
