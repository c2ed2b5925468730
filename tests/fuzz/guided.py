"""Search for inputs that break a promise of the service.

Atheris mutates inputs like libFuzzer and records the lines of Python that an input reaches, and the
branches of an engine built with coverage. `make check NAME=fuzz` runs it. The arguments are the
name of a target, the path of such an engine or an empty text, and those of libFuzzer.
"""

import importlib
import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import atheris

from fuzz.json_mutation import other_params

_LENGTH = re.compile(rb"Content-Length: \d+")
_RARELY = 16
_OFTEN = 3

Mutator = Callable[[bytes, int, int], bytes]


class Target(NamedTuple):
    """The location of a class with a `broken` oracle, and the modules to instrument."""

    module: str
    name: str
    reaches: list[str]
    mutate: Mutator


def load_engine(path: Path) -> None:
    """Import the engine at this path instead of the built one.

    It needs libFuzzer's counters, so libFuzzer must be loaded first, with global symbols.
    """
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
    importlib.import_module("atheris.core_with_libfuzzer")
    sys.setdlopenflags(flags)
    spec = importlib.util.spec_from_file_location("foreblock._engine", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)


def mutate_request(data: bytes, max_size: int, seed: int) -> bytes:
    """Mutate a request: mostly another body with the right length, occasionally other bytes."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end or seed % _RARELY == 0:
        return bytes(atheris.Mutate(data, max_size))
    room = max_size - len(head) - len(end) - 8
    body = bytes(atheris.Mutate(body, max(room, 1)))
    return _LENGTH.sub(b"Content-Length: %d" % len(body), head) + end + body


def mutate_params(data: bytes, max_size: int, seed: int) -> bytes:
    """Mutate the params of the method, occasionally the body."""
    head, start, params = data.partition(b'"params":')
    if not start or not params.endswith(b"}") or seed % _RARELY == 0:
        return bytes(atheris.Mutate(data, max_size))
    room = max_size - len(head) - len(start) - 1
    other = other_params(params[:-1], seed) if seed % _OFTEN else None
    if other is None or len(other) > room:
        other = bytes(atheris.Mutate(params[:-1], max(room, 1)))
    return head + start + other + b"}"


def mutate_frames(data: bytes, max_size: int, seed: int) -> bytes:
    """Mutate the frames after the head, occasionally the head."""
    head, end, frames = data.partition(b"\r\n\r\n")
    if not end or seed % _RARELY == 0:
        return bytes(atheris.Mutate(data, max_size))
    room = max_size - len(head) - len(end)
    return head + end + bytes(atheris.Mutate(frames, max(room, 1)))


_SERVED = ["foreblock.rpc", "foreblock.methods"]
TARGETS = {
    "fast_path": Target("fuzz.conversation", "TwoWays", _SERVED, mutate_request),
    "requests": Target("fuzz.answering", "Answering", _SERVED, mutate_params),
    "websocket": Target("fuzz.talking", "Talking", ["foreblock.server"], mutate_frames),
}


def main() -> None:
    """Run until libFuzzer ends, or an error is found."""
    target, engine = TARGETS[sys.argv.pop(1)], sys.argv.pop(1)
    if engine:
        load_engine(Path(engine))
    with atheris.instrument_imports(include=target.reaches):
        module = importlib.import_module(target.module)

    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: PTH112, S108, where there is one
    with tempfile.TemporaryDirectory(prefix="foreblock-fuzz-", dir=memory) as folder:
        tried = getattr(module, target.name)(Path(folder) / "store")

        def one(data: bytes) -> None:
            why = tried.broken(data)
            assert why is None, f"{data!r}: {why}"

        atheris.Setup(sys.argv, one, custom_mutator=target.mutate, internal_libfuzzer=True)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
