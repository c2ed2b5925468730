"""Methods of development chains, which change a chain.

The rows of the table are beside the methods. At addresses that do not answer these methods they
are known all the same: the response names the setting that hides them, and no account is listed.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final, NoReturn

from msgspec import Raw

from foreblock.errors import HiddenMethod
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.blocks.receipts import ReceiptCache, find_receipt
from foreblock.methods.dev.account_methods import (
    DropMethods,
    ImpersonationMethods,
    account_family,
    pool_family,
)
from foreblock.methods.dev.branches import (
    BranchMethods,
    FaultMethods,
    Placing,
    branch_family,
    fault_family,
)
from foreblock.methods.dev.dumping import DumpMethods
from foreblock.methods.dev.mining import mining_family
from foreblock.methods.dev.node_info import ConsoleMethods, NodeInfoMethods, node_family
from foreblock.methods.dev.preparing import Preparing
from foreblock.methods.dev.signing import SignMethods
from foreblock.methods.dev.state_edits import StateEditMethods, TokenMethods, state_family
from foreblock.methods.dev.unlocked import UnlockedMethods, sending_family
from foreblock.methods.events.commit_watch import CommitWatch
from foreblock.methods.fee_methods import PriorityFees
from foreblock.methods.params import take_none
from foreblock.methods.pool.filling import FillMethods
from foreblock.methods.pool.raw_sending import SyncSendMethods
from foreblock.methods.sequencing import Sequencing
from foreblock.methods.table import Family, MethodFunction
from foreblock.scheduling.scheduler import Scheduler
from foreblock.settings import Settings

ON_LOOPBACK: Final = (
    "methods of development chains are answered at loopback addresses only, "
    "unless dev_methods is everywhere"
)
NOWHERE: Final = "methods of development chains are switched off by dev_methods"

AT_THE_WRITER: Final = (
    "a replica changes nothing, and the node that writes the log of a development chain does"
)


def dev_families(
    settings: Settings,
    scheduler: Scheduler,
    sequencing: Sequencing,
    priority_fees: PriorityFees,
    commits: CommitWatch,
) -> tuple[Family, ...]:
    """The methods of a chain that accepts commands; other chains have none."""
    submissions, commands, keys = sequencing.submissions, sequencing.commands, sequencing.keys
    if commands is None:
        return ()
    # Transactions of the accounts build on the block in progress.
    at_pending = replace(settings, view="preconfirmed")
    filling = FillMethods(at_pending, scheduler, submissions, priority_fees)
    branches = BranchMethods(commands, Placing(keys, Preparing(keys, filling), scheduler))
    find = partial(find_receipt, ReceiptCache())
    sync = SyncSendMethods(settings, submissions, find, scheduler.budget, commits)
    unlocked = UnlockedMethods(keys, commands, submissions, filling, sync, scheduler)
    version = settings.client_version
    return (
        mining_family(commands),
        state_family(
            StateEditMethods(commands),
            TokenMethods(commands, settings, scheduler),
            DumpMethods(commands, settings, scheduler),
        ),
        branch_family(branches),
        fault_family(FaultMethods(commands), branches),
        sending_family(unlocked, SignMethods(keys, scheduler)),
        account_family(ImpersonationMethods(keys, commands), unlocked),
        pool_family(DropMethods(commands)),
        node_family(
            NodeInfoMethods(scheduler, priority_fees, sequencing.order, version, commands),
            ConsoleMethods(commands),
        ),
    )


def hide(families: Iterable[Family], why: str) -> dict[str, MethodFunction]:
    """The responses in place of these methods, and of eth_accounts."""
    methods = (method for family in families for method in family.methods)
    return {
        "eth_accounts": no_accounts,
        **{name: partial(_refuse, name, why) for method in methods for name in method.names},
    }


def no_accounts(_view: LedgerView, raw: Raw) -> bytes:
    """No accounts: the service sends for none here."""
    take_none(raw)
    return b"[]"


def _refuse(name: str, why: str, _view: LedgerView, _raw: Raw) -> NoReturn:
    raise HiddenMethod(name, why)
