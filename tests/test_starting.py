"""The modules loaded by processes at their start, and the deferred ones."""

import gc
import subprocess
import sys

import pytest

from foreblock.cli import main
from foreblock.server.process import spare_from_collection
from support.servers.dev_processes import package_environment

# Modules that load slowly, and modules that a serving process does not need.
LATER = {"rich", "pygments", "foreblock.sources.feed_network"}


@pytest.mark.parametrize(
    "module", ["foreblock.service.worker", "foreblock.service.writer", "foreblock.cli.dev"]
)
def test_a_process_loads_what_it_needs(module: str) -> None:
    code = f"import {module}, sys; print(*sys.modules); import rich.console; print(rich.console)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=package_environment(),
    )
    loaded, rich = done.stdout.splitlines()
    assert "structlog" in loaded.split()
    assert not LATER & set(loaded.split())
    assert "rich" in rich  # still available


def test_processes_that_serve_collect_no_garbage_before_they_are_ready() -> None:
    code = (
        "import gc, sys; spec = type(sys)('spec'); "
        "spec.name = 'foreblock.service.worker'; sys.modules['__main__'].__spec__ = spec; "
        "import foreblock.starting; print(gc.isenabled())"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=package_environment()
    )
    assert done.stdout == "False\n"


def test_garbage_is_collected_again_afterwards() -> None:
    gc.disable()
    try:
        spare_from_collection()
        assert gc.isenabled()
    finally:
        gc.enable()
    main.verbs()
    assert gc.isenabled()


NAMES = """
import sys
before = {*sys.modules}
import foreblock
print(sorted({*sys.modules} - before))
print(foreblock.Client.__name__, {"Client", "AsyncClient"} <= {*dir(foreblock)})
print("websockets" in sys.modules, "foreblock.ledger" in sys.modules)
"""


def test_a_public_name_is_imported_when_it_is_used() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NAMES],
        capture_output=True, text=True, check=True, env=package_environment(),
    )  # fmt: skip
    assert done.stdout.splitlines() == ["['foreblock']", "Client True", "False False"]
