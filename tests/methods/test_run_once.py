"""All methods that send, subscribe or filter run once per request."""

from foreblock.methods import make_table
from foreblock.settings import Settings
from support.servers.long_work import scheduler

CHANGING = ("eth_send", "eth_new", "eth_subscribe", "eth_unsubscribe", "eth_uninstall")


def test_methods_that_change_something_run_once() -> None:
    table = make_table(Settings(), scheduler(1))
    changing = {name for name in table.functions if name.startswith(CHANGING)}
    assert changing | {"eth_getFilterChanges"} == table.once
