"""A reading process: checks one view after another until its input ends.

Run as `python -m crash.reader FOLDER VIEWS`; the store is reopened after that many views. Prints
each commit whose view is consistent, or its errors. Waits until its output is read.
"""

import select
import sys

from crash.look import mixture
from foreblock._engine import Store


def main(path: str, views_per_store: int) -> None:
    last = 0
    while not told_to_stop():
        with Store(path) as store:
            for _ in range(views_per_store):
                with store.view() as view:
                    commit = view.heads.commit
                    if found := mixture(view):
                        sys.exit(f"commit {commit}: {found}")
                if commit < last:
                    sys.exit(f"commit {commit} after {last}")
                if commit != last:
                    sys.stdout.write(f"{commit}\n")
                    sys.stdout.flush()
                last = commit
                if told_to_stop():
                    break


def told_to_stop() -> bool:
    return bool(select.select([0], [], [], 0)[0])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
