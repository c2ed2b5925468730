"""The modules of the service, and an OpenRPC document of all its methods."""

from collections.abc import Sequence

from foreblock.methods.openrpc.discovery import Discovery
from foreblock.methods.options import Options
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler


def openrpc_family(options: Options, scheduler: Scheduler, families: Sequence[Family]) -> Family:
    """The methods of this folder, about those of all families."""
    discovery = Discovery(options, scheduler)
    family = Family(
        "What is offered",
        (
            Method("rpc_modules() -> Modules", discovery.modules),
            Method("rpc.discover() -> OpenRpcDocument", discovery.discover),
        ),
    )
    discovery.families = (*families, family)
    return family
