"""eth_getLogs: logs that match a filter, of one block or of a range of blocks."""

from collections.abc import Awaitable

from msgspec import Raw

from foreblock.errors import TooManyLogs
from foreblock.ledger.reading.logs import LogRange, find_logs
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.logs.log_filter import LogQuery, read_query
from foreblock.methods.logs.log_texts import LogTexts
from foreblock.methods.options import Options
from foreblock.methods.params import read_in_turn
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps, paced
from foreblock.scheduling.thresholds import THRESHOLDS


class LogMethods:
    """Methods that look for logs."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        self._options = options
        self._scheduler = scheduler

    def get_logs(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The logs that match a filter, in their order in the chain."""
        deadline = self._scheduler.deadline()

        def answer(pace: Pace) -> Steps[Text]:
            query = yield from read_in_turn(read_query, raw)
            return (yield from paced(self.find(view, query, deadline), pace))

        found = self._scheduler.run(answer, view.client, self._scheduler.searches)
        return self._scheduler.give(found) if isinstance(found, bytes | list) else found

    def find(self, view: LedgerView, query: LogQuery, deadline: float) -> Steps[Text]:
        """Find the logs of a query before a deadline."""
        where = query.find_range(view)
        self._check_distance(where)
        texts = LogTexts(
            where,
            self._options.logs_results,
            lambda: self._scheduler.time_is_up(deadline, THRESHOLDS.logs_time),
        )
        yield from find_logs(view, query.filter, where, texts)
        return texts.text()

    def _check_distance(self, where: LogRange) -> None:
        most = self._options.logs_blocks
        if most and where.last - where.first > most:
            why = f"exceed maximum block range: {most}"
            raise TooManyLogs(why, where.first, where.first + most)
