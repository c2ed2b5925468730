"""Write the state of a stopped or running dev chain to a file, in anvil's format.

    python -m foreblock.service.state_dump STORE FILE

It runs as a process of its own, since the one that starts the others opens no store. The file
appears at its place when it is complete. `anvil --load-state` takes it, and so does `--alloc`.
"""

import foreblock.starting  # noqa: F401, before all others

# isort: split
import os
import sys
from contextlib import suppress
from pathlib import Path

from foreblock.clock import DrivenClock
from foreblock.errors import ForeblockError
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.open_store import Store
from foreblock.methods.dev.dumping import dump_of


def write_dump(folder: str, file: Path) -> None:
    """Write all accounts of the chain in a folder, those of the block in progress included.

    Raises `StoreError`, `OSError`.
    """
    store = Store(folder)
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        # A block in progress whose chain has stopped does not expire by a clock that stands.
        view = Ledger(store, clock=DrivenClock()).view()
        try:
            with part.open("wb") as opened:
                opened.writelines(dump_of(view))
        finally:
            view.close()
        part.replace(file)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    finally:
        store.close()


def main() -> None:
    """Write the dump that the arguments name; a failure is one line."""
    folder, file = sys.argv[1:]
    try:
        write_dump(folder, Path(file))
    except (ForeblockError, OSError) as why:
        sys.exit(str(why))


if __name__ == "__main__":
    main()
