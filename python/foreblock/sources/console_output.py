"""The console output of a network: requests, transactions, blocks and console.log.

Each network has one queue, in the order of the events: workers add a request before it reaches
the sequencer, and the sequencer adds each commit before it answers. A thread takes the items,
reads the committed rows and writes the text. So neither the sequencer nor a worker waits for the
terminal; if the queue is full, items are dropped and counted.

The thread prints after `PAUSE` seconds without a new item, or after `LONGEST` seconds, so that it
does not compete with a client that sends one request after the other. An item has the position of
the chain at its commit, so the order is kept. A command that abandons blocks calls `catch_up`
first, because their rows are gone afterwards.

A repeated request is printed once, with its count when another item follows.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import structlog

from foreblock.errors import ForeblockError
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.dev_rows import DevState
from foreblock.ledger.tracing.chain_report import ChainReport, ReachedPosition
from foreblock.settings import ChainSettings

MOST_WAITING: Final = 10_000  # texts and requests
CLOSE_SECONDS: Final = 1.0  # for what waits at the end
PAUSE: Final = 0.02  # seconds
LONGEST: Final = 0.5

log = structlog.get_logger()


class ConsoleOutput(NamedTuple):
    """The kinds of output that are printed for a network."""

    is_on: bool
    traces: bool  # what transactions call


def console_output_of(chain: ChainSettings, state: DevState | None) -> ConsoleOutput:
    """The output of a chain: by its settings, unless a command has changed it."""
    prints, traces = (None, None) if state is None else (state.prints, state.prints_traces)
    return ConsoleOutput(
        chain.print if prints is None else prints,
        chain.print_traces if traces is None else traces,
    )


class _Commits:
    """An item: the commits up to a position."""

    def __init__(self, printer: "NetworkPrinter", reached: ReachedPosition) -> None:
        self._printer: Final = printer
        self.reached = reached

    def __call__(self) -> None:
        self._printer.report(self.reached)


class _Request:
    """An item: a method that was called, some times in a row."""

    def __init__(self, printer: "NetworkPrinter", method: str, times: int) -> None:
        self._printer: Final = printer
        self.method: Final = method
        self.times = times

    def __call__(self) -> None:
        self._printer.write_request(self.method, self.times)


class NetworkPrinter:
    """Prints one network."""

    def __init__(self, put: Callable[[str], None], label: str = "") -> None:
        """`put` takes a text of whole lines and never waits; each begins with the label."""
        self._put: Final = put
        self._label: Final = label
        self._waiting: deque[Callable[[], None]] = deque()
        self._missed = 0
        self._is_closed = False
        self._changed: Final = threading.Condition(threading.RLock())
        self._is_asleep = False  # the thread, until it is woken
        self._added = 0  # items, in all
        self._printing_now: Final = threading.Lock()  # whose holder takes items
        self._thread: threading.Thread | None = None
        self._output = ConsoleOutput(is_on=False, traces=False)
        self._committed: ReachedPosition | None = None  # by the sequencer
        self._reported: ReachedPosition | None = None  # of that, what is printed
        # Of the thread.
        self._report: ChainReport | None = None
        self._last_request, self._times = "", 0

    # --- From any thread ---------------------------------------------------------------

    @property
    def is_on(self) -> bool:
        """Return True if anything is printed."""
        return self._output.is_on

    def follow(self, ledger: Ledger, output: ConsoleOutput) -> None:
        """Print the commits from now on, according to `output`."""
        self._output = output
        self._committed = self._reported = None
        if output.is_on:
            self._add(partial(self._begin, ChainReport(ledger)), must=True)
        elif self._thread is not None:
            self._add(partial(self._begin, None), must=True)

    def stop(self) -> None:
        """Print nothing of what is committed: the store is closed."""
        self._output = ConsoleOutput(is_on=False, traces=False)
        if self._thread is not None:
            self._add(partial(self._begin, None), must=True)

    def committed(self, reached: ReachedPosition) -> None:
        """Print the commits up to this position."""
        with self._changed:
            if reached == self._committed:
                return
            self._committed = reached
            if self._waiting and isinstance(self._waiting[-1], _Commits):
                self._waiting[-1].reached = reached
            else:
                self._add(_Commits(self, reached))

    def catch_up(self) -> None:
        """Print all commits now: some will be abandoned."""
        if self.is_on and self._reported != self._committed:
            while self._print_next():
                pass

    def request(self, method: str, times: int = 1) -> None:
        """Print that a client has called a method `times` in a row."""
        with self._changed:
            last = self._waiting[-1] if self._waiting else None
            if isinstance(last, _Request) and last.method == method:
                last.times += times
                self._added += 1
            else:
                self._add(_Request(self, method, times))

    def text(self, text: str) -> None:
        """Print lines."""
        self._add(partial(self._write, text))

    def miss(self, count: int) -> None:
        """Report with the next text how many are not shown."""
        with self._changed:
            self._missed += count

    def close(self) -> None:
        """Print what waits, for a second at most."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()  # also in a pause
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    def _add(self, item: Callable[[], None], *, must: bool = False) -> None:
        with self._changed:
            if len(self._waiting) >= MOST_WAITING and not must:
                self._missed += 1
                return
            self._waiting.append(item)
            self._added += 1
            if self._is_asleep:
                self._is_asleep = False
                self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="print", daemon=True)
                self._thread.start()

    # --- On the thread -----------------------------------------------------------------

    def _run(self) -> None:
        while self._await():
            while self._print_next():
                pass

    def _await(self) -> bool:
        """Wait for items, and for more of them; false at the end."""
        with self._changed:
            if not (self._waiting or self._is_closed):
                self._is_asleep = True
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                self._is_asleep = False
            self._rest()
            return bool(self._waiting) or not self._is_closed

    def _rest(self) -> None:
        """Wait for a pause, unless many wait."""
        until = time.monotonic() + LONGEST
        while not self._is_closed and time.monotonic() < until:
            before = self._added
            self._changed.wait_for(lambda: self._is_closed, PAUSE)
            if self._added == before or len(self._waiting) > MOST_WAITING // 4:
                break

    def _print_next(self) -> bool:
        """Print the next item, on any thread; false where there is none."""
        with self._printing_now:
            item = self._take()
            if item is None:
                return False
            try:
                item()
            except ForeblockError as why:  # the store is closed
                log.debug("not_printed", why=str(why))
            except Exception:
                log.exception("console_output_failed")
        return True

    def _take(self) -> Callable[[], None] | None:
        """The next item, if there is one."""
        with self._changed:
            missed, self._missed = self._missed, 0
            item = self._waiting.popleft() if self._waiting else None
        if missed:
            self._write(f"({missed} requests or texts are not shown)")
        return item

    def _begin(self, report: ChainReport | None) -> None:
        self._report = report

    def report(self, reached: ReachedPosition) -> None:
        """Write the commits up to this position."""
        if self._report is not None:
            for text in self._report.report(reached, traces=self._output.traces):
                self._write(text)
        self._reported = reached

    def write_request(self, method: str, times: int) -> None:
        """Write a method that was called so often, or count it."""
        if method == self._last_request:
            self._times += times
            return
        self._write(method)
        self._last_request, self._times = method, times

    def _write(self, text: str) -> None:
        if self._times > 1:
            self._put(self._labelled(f"{self._last_request} ({self._times} times)"))
        self._last_request, self._times = "", 0
        self._put(self._labelled(text))

    def _labelled(self, text: str) -> str:
        if not self._label:
            return text
        return "\n".join(self._label + line if line else "" for line in text.split("\n"))
