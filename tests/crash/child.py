"""A process with its own store, controlled line by line.

Run as `python -m crash.child`. A line is the JSON of a command and its arguments; the response is
the JSON of its result, or of the exception's name and text. `Child` is the other end.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from foreblock import errors
from foreblock._engine import Store, View

ROW = b"row"


class Commands:
    store: Store
    view: View

    def open(self, path: str, map_size: int | None = None, *, write: bool = False) -> None:
        self.store = Store(path, write=write, map_size=map_size)

    def close(self) -> None:
        self.store.close()

    def heads(self) -> int:
        """The commit of a new view."""
        with self.store.view() as view:
            return view.heads.commit

    def commit(self, size: int = 10, times: int = 1) -> int:
        """Replace the row by one that is filled with the commit's number."""
        for _ in range(times):
            batch = self.store.batch()
            batch.put(ROW, bytes([batch.next % 256]) * size)
            batch.put(b"extra", b"e")
            heads = self.store.commit(batch)
        return heads.commit

    def row(self) -> list[int]:
        """The distinct bytes of the row in a new view, and its length."""
        with self.store.view() as view:
            return summary(view)

    def hold(self) -> None:
        self.view = self.store.view()

    def held_row(self) -> list[int]:
        return summary(self.view)

    def limit_files(self, size: int) -> None:
        """Limit the size of files of this process. Python ignores SIGXFSZ."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def limit_addresses(self, more: int | None) -> None:
        """Limit the additional address space of this process; None removes the limit."""
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = resource.RLIM_INFINITY if more is None else pages * 4096 + more
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))

    def map_size(self) -> int:
        return self.store.map_size

    def mount(self, path: str, size: int) -> None:
        """Mount a small disk in memory, visible only to this process."""
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path]
        subprocess.run(command, check=True)

    def fill(self, path: str, pages_left: int) -> None:
        """Leave only this many free pages on the disk of this file."""
        with Path(path).open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                file.truncate(file.tell() - 4096 * pages_left)

    def remove(self, path: str) -> None:
        Path(path).unlink()


def summary(view: View) -> list[int]:
    row = view.row(ROW) or b""
    return [*sorted(set(row)), len(row)]


def main() -> None:
    commands = Commands()
    for line in sys.stdin:
        name, arguments = json.loads(line)
        command: Callable[..., object] = getattr(commands, name)
        try:
            answer = [True, command(**arguments)]
        except errors.ForeblockError as error:
            answer = [False, type(error).__name__, str(error)]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


class Child:
    """This process; its attributes are the commands."""

    def __init__(self, *launcher: str) -> None:
        paths = [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            [*launcher, sys.executable, "-m", "crash.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, command: str, **arguments: object) -> Any:  # noqa: ANN401 - of JSON
        """Return the result of the command; its exception is raised here."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps([command, arguments]) + "\n")
        stdin.flush()
        answer = json.loads(stdout.readline())
        if answer[0]:
            return answer[1]
        raise Failed(answer[1], answer[2])


class Failed(Exception):
    """A failed command, with the name of the exception."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
        self.text = text


if __name__ == "__main__":
    main()
