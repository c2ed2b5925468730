"""Development chains at addresses that do not answer their methods: each says why.

A name that is in no table is an unknown method; these are known, and the setting that hides
them is named. The service sends for no account there.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final, NoReturn

from msgspec import Raw

from foreblock.errors import HiddenMethod
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.params import take_none
from foreblock.methods.table import Family, MethodFunction

ON_LOOPBACK: Final = (
    "methods of development chains are answered at loopback addresses only, "
    "unless dev_methods is everywhere"
)
NOWHERE: Final = "methods of development chains are switched off by dev_methods"

AT_THE_WRITER: Final = (
    "a replica changes nothing, and the node that writes the log of a development chain does"
)


def hide(families: Iterable[Family], why: str) -> dict[str, MethodFunction]:
    """The responses in place of these methods, and of eth_accounts."""
    methods = (method for family in families for method in family.methods)
    return {
        "eth_accounts": no_accounts,
        **{name: partial(_refuse, name, why) for method in methods for name in method.names},
    }


def no_accounts(_view: LedgerView, raw: Raw) -> bytes:
    """None: the service sends for nobody here."""
    take_none(raw)
    return b"[]"


def _refuse(name: str, why: str, _view: LedgerView, _raw: Raw) -> NoReturn:
    raise HiddenMethod(name, why)
