"""The flags of anvil that do nothing here: taken without effect, or refused. No I/O.

One without effect is about a thing on which nothing here depends; its help says which. One that
would have an effect that cannot be had is refused, and its help is the reason.
"""

from functools import partial
from typing import Any, Final

from foreblock.cli.anvil.flag import REFUSED, WITHOUT_EFFECT, AnvilFlag

NO_FORKING: Final = "a chain to fork from cannot be given yet; it comes with following chains"


def _flag(section: str, why: str, *names: str, **more: Any) -> AnvilFlag:  # noqa: ANN401
    """A row, with further fields of it by name."""
    return AnvilFlag(names, why, section, **more)


_without_effect = partial(_flag, WITHOUT_EFFECT)
_refused = partial(_flag, REFUSED)

IGNORED: Final = (
    _without_effect("History is on disk.", "--prune-history", metavar="[N]", otherwise=""),
    _without_effect("The same.", "--max-persisted-states", metavar="N"),
    _without_effect("The same.", "--transaction-block-keeper", metavar="N"),
    _without_effect("The same.", "--cache-path", metavar="PATH"),
    _without_effect("A dump has the newest state.", "--preserve-historical-states"),
    _without_effect("Fees follow EIP-1559.", "--gas-price", metavar="FEE"),
    _without_effect(
        "No tip is enforced.", "--disable-min-priority-fee", aliases=("--no-priority-fee",)
    ),
    _without_effect("Gas bounds memory.", "--memory-limit", metavar="BYTES"),
    _without_effect("debug_trace… always has steps.", "--steps-tracing", aliases=("--tracing",)),
    _without_effect(
        "There is one worker; --workers N adds some.",
        "-j",
        "--threads",
        metavar="N",
        aliases=("--jobs",),
    ),
    _without_effect(
        "It is printed with the rest; -q prints nothing.",
        "--disable-console-log",
        aliases=("--no-console-log",),
    ),
    _without_effect("Nothing is coloured.", "--color", metavar="WHEN"),
    _without_effect("Output is text.", "--json"),
    _without_effect("Output is text.", "--md"),
    _without_effect("There is one level.", "-v", "--verbosity"),
)


NOT_TO_BE_HAD: Final = (
    _refused(NO_FORKING, "-f", "--fork-url", metavar="URL", aliases=("--rpc-url",), repeats=True),
    _refused(NO_FORKING, "--fork-block-number", metavar="BLOCK"),
    _refused(NO_FORKING, "--fork-transaction-hash", metavar="HASH"),
    _refused(NO_FORKING, "--fork-chain-id", metavar="ID"),
    _refused(NO_FORKING, "--fork-header", metavar="HEADER", repeats=True),
    _refused(NO_FORKING, "--fork-retry-backoff", metavar="N"),
    _refused(NO_FORKING, "--compute-units-per-second", metavar="N"),
    _refused(NO_FORKING, "--no-rate-limit", aliases=("--no-rpc-rate-limit",)),
    _refused(NO_FORKING, "--no-storage-caching"),
    _refused(NO_FORKING, "--retries", metavar="N"),
    _refused(NO_FORKING, "--timeout", metavar="MS"),
    _refused(
        "there is no IPC; HTTP and WebSocket are at one address",
        "--ipc",
        metavar="[PATH]",
        otherwise="",
        aliases=("--ipcpath",),
    ),
    _refused("a chain begins with block 0", "--number", metavar="N"),
    _refused("blocks have as many as their gas allows", "--max-transactions", metavar="N"),
    _refused(
        "a transaction that its sender cannot pay for is refused", "--disable-pool-balance-checks"
    ),
    _refused("the rules of Celo are not here; there are Ethereum's and OP chains'", "--celo"),
    _refused("the rules of Tempo are not here; there are Ethereum's and OP chains'", "--tempo"),
)
