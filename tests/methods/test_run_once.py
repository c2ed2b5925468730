"""Methods that run once are methods, and all that send, subscribe or filter are among them."""

from foreblock.methods import make_families
from foreblock.methods.table import RUN_ONCE
from foreblock.settings import Settings
from support.servers.long_work import scheduler

# Families whose methods change something, but for those that only read.
CHANGING = {"eth_send", "eth_new", "eth_subscribe", "eth_unsubscribe", "eth_uninstall"}


def test_what_changes_something_runs_once() -> None:
    names = {
        name
        for family in make_families(Settings(), scheduler(1))
        for method in family.methods
        for name in method.names
    }
    assert names >= RUN_ONCE
    changing = {name for name in names if name.startswith(tuple(CHANGING))}
    assert changing | {"eth_getFilterChanges"} == RUN_ONCE
