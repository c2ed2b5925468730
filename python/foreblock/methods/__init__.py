"""The methods, by family and by their names on the wire.

Each takes a view and the raw parameters and returns the JSON text of its result, at once or as an
awaitable, or raises. Long texts come in pieces. Nothing here knows envelopes, error codes or
HTTP. The table of a family is in the `__init__` of its folder, or beside its methods.
"""

from typing import NamedTuple

from foreblock.methods.blocks import block_family
from foreblock.methods.calls import call_family
from foreblock.methods.dev import dev_families, hide
from foreblock.methods.events import Events, event_families
from foreblock.methods.fee_methods import PriorityFees
from foreblock.methods.node import Identity, node_family
from foreblock.methods.openrpc import openrpc_family
from foreblock.methods.pool import pool_family
from foreblock.methods.sequencing import NO_KEYS, EmptyPool, Keys, Sequencing, WaitingPool
from foreblock.methods.state_methods import state_family
from foreblock.methods.table import Family, MethodTable
from foreblock.methods.tracing import tracing_families
from foreblock.scheduling.scheduler import Scheduler
from foreblock.settings import Settings


class SharedFamilies(NamedTuple):
    """Families that answer alike in both dialects; their caches serve all views of a network."""

    blocks: Family
    node: Family
    priority_fees: PriorityFees


def make_shared(
    settings: Settings,
    scheduler: Scheduler,
    pool: WaitingPool | None = None,
    keys: Keys = NO_KEYS,
) -> SharedFamilies:
    """The families that all views of one network share."""
    priority_fees = PriorityFees()
    return SharedFamilies(
        block_family(settings, scheduler, pool or EmptyPool()),
        node_family(scheduler, priority_fees, Identity(keys, settings.client_version)),
        priority_fees,
    )


def make_families(
    settings: Settings,
    scheduler: Scheduler,
    sequencing: Sequencing | None = None,
    shared: SharedFamilies | None = None,
    events: Events | None = None,
) -> tuple[Family, ...]:
    """All methods of one view; without a sequencer it refuses transactions.

    Only chains that take commands have the methods of development chains, unless those are
    hidden.
    """
    sequencing = sequencing or Sequencing()
    submissions, pool, keys = sequencing.submissions, sequencing.pool, sequencing.keys
    events = events or Events()
    shared = shared or make_shared(settings, scheduler, pool, keys)
    fees, commits = shared.priority_fees, events.commits
    hidden = bool(sequencing.hidden)
    families = (
        shared.blocks,
        state_family(settings, scheduler, submissions),
        call_family(settings, scheduler),
        *event_families(settings, scheduler, events),
        pool_family(settings, scheduler, submissions, pool, fees, commits),
        shared.node,
        *tracing_families(settings, scheduler),
        *(() if hidden else dev_families(settings, scheduler, sequencing, fees, commits)),
    )
    return (*families, openrpc_family(settings, scheduler, families))


def make_table(
    settings: Settings,
    scheduler: Scheduler,
    sequencing: Sequencing | None = None,
    shared: SharedFamilies | None = None,
    events: Events | None = None,
) -> MethodTable:
    """The table of one view, for its dispatcher."""
    sequencing = sequencing or Sequencing()
    shared = shared or make_shared(settings, scheduler, sequencing.pool, sequencing.keys)
    events = events or Events()
    families = make_families(settings, scheduler, sequencing, shared, events)
    rows = [(name, row) for family in families for row in family.methods for name in row.names]
    table = {name: row.run for name, row in rows}
    if sequencing.hidden:
        fees, commits = shared.priority_fees, events.commits
        methods = dev_families(settings, scheduler, sequencing, fees, commits)
        table |= hide(methods, sequencing.hidden)
    return MethodTable(
        table,
        writing=frozenset(name for name, row in rows if not row.reads),
        once=frozenset(name for name, row in rows if row.once),
    )
