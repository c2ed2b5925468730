"""The methods, by family and by their names on the wire.

Each takes a view and the raw parameters and gives the JSON text of its result, at once or as an
awaitable, or raises. Long texts come in pieces. Nothing here knows envelopes, error codes or
HTTP. A folder is a family, and its table is in its `__init__`.
"""

from foreblock.methods.blocks import block_family
from foreblock.methods.calls import call_family
from foreblock.methods.node import node_family
from foreblock.methods.options import Options
from foreblock.methods.pool import pool_family
from foreblock.methods.pool.sending import NoSequencer, Submissions
from foreblock.methods.state import state_family
from foreblock.methods.table import Family, MethodFunction
from foreblock.methods.tracing import tracing_families
from foreblock.scheduling.scheduler import Scheduler


def make_families(
    options: Options, scheduler: Scheduler, submissions: Submissions | None = None
) -> tuple[Family, ...]:
    """All methods of one network; without submissions it refuses transactions."""
    submissions = submissions or NoSequencer()
    return (
        block_family(options, scheduler),
        state_family(options, submissions),
        call_family(options, scheduler),
        pool_family(submissions),
        node_family(scheduler),
        *tracing_families(options, scheduler),
    )


def make_methods(
    options: Options, scheduler: Scheduler, submissions: Submissions | None = None
) -> dict[str, MethodFunction]:
    """The table of one network, for its dispatcher."""
    families = make_families(options, scheduler, submissions)
    return {method.name: method.run for family in families for method in family.methods}
