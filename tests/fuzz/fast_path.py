"""Requests that look for one to which the engine and Python give different answers.

Atheris brings libFuzzer's mutations and sees which lines of Python an input reaches, and which
branches of the engine if that was built to tell. `make fuzz` runs it; the arguments are
libFuzzer's, after the path of such an engine or an empty text.
"""

import importlib
import importlib.util
import os
import re
import sys
import tempfile
from pathlib import Path

import atheris

_LENGTH = re.compile(rb"Content-Length: \d+")
_RARELY = 16


def load_engine(path: Path) -> None:
    """Use the engine at this path wherever the built one would be.

    Its counters are libFuzzer's, so that has to be there first, for everybody to see.
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


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """Another request: mostly another body under the right length, now and then other bytes."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end or seed % _RARELY == 0:
        return bytes(atheris.Mutate(data, max_size))
    room = max_size - len(head) - len(end) - 8
    body = bytes(atheris.Mutate(body, max(room, 1)))
    return _LENGTH.sub(b"Content-Length: %d" % len(body), head) + end + body


def main() -> None:
    """Run until libFuzzer has had enough, or a difference is found."""
    engine = sys.argv.pop(1)
    if engine:
        load_engine(Path(engine))
    with atheris.instrument_imports(include=["foreblock.rpc", "foreblock.methods"]):
        from fuzz.conversation import TwoWays  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="foreblock-fuzz-") as folder:
        ways = TwoWays(Path(folder) / "store")

        def one(data: bytes) -> None:
            said = ways.disagreement(data)
            assert said is None, f"{data!r}: the engine says {said[0]!r}, Python {said[1]!r}"

        atheris.Setup(sys.argv, one, custom_mutator=mutate, internal_libfuzzer=True)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
