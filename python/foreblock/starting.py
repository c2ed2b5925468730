"""Imported first by commands and processes that serve: their modules load in less time.

structlog loads rich, where that is installed, for tracebacks in colour: a sixth of the start of a
process, for what none of them prints. It is loaded without; others may still import rich.

Garbage collections while modules are loaded find next to nothing. Processes that only serve do
without them until they are ready (`server.process.spare_from_collection`).
"""

import gc
import sys
from typing import Any

SERVING = "foreblock.service."  # modules that run as processes of their own

_modules: dict[str, Any] = sys.modules
if not {"structlog", "rich"} & _modules.keys():
    _modules["rich"] = None
    import structlog  # noqa: F401, for others

    del _modules["rich"]

_spec = getattr(_modules["__main__"], "__spec__", None)
if _spec is not None and _spec.name.startswith(SERVING):
    gc.disable()
