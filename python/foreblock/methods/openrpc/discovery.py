"""rpc.discover, rpc_modules: what a client may ask this service for.

The document is made when it is first asked for, and kept: it is the same for all views.
"""

from collections.abc import Awaitable, Sequence

import msgspec
from msgspec import Raw

from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.node.about import take_none
from foreblock.methods.openrpc.document import make_document
from foreblock.methods.options import Options
from foreblock.methods.table import Family
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps

MODULE_VERSION = "1.0"  # what geth says of all of them


class Discovery:
    """Methods about the table of methods."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        self.families: Sequence[Family] = ()  # set once they are all made
        self._block_required = options.block_required
        self._scheduler = scheduler
        self._document: bytes | None = None

    def discover(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """This document: every method with its parameters and its result (OpenRPC)."""
        take_none(raw)
        return self._scheduler.share((self, "document"), self._described)

    def _described(self) -> Steps[Text]:
        if self._document is None:
            made = make_document(self.families, block_required=self._block_required)
            yield None
            self._document = msgspec.json.encode(made)
        return self._document

    def modules(self, _view: LedgerView, raw: Raw) -> bytes:
        """The prefixes of the methods that are served, with a version each."""
        take_none(raw)
        methods = [method for family in self.families for method in family.methods]
        names = [name for method in methods for name in method.names]
        prefixes = sorted({name.partition("_")[0] for name in names if "_" in name})
        return msgspec.json.encode(dict.fromkeys(prefixes, MODULE_VERSION))
