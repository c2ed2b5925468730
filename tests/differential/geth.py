"""geth over a chain that it has imported."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

SERVED = "HTTP server started"


@contextmanager
def geth(
    program: str, files: Path, folder: Path, apis: str = "eth,net,web3,debug"
) -> Iterator[str]:
    """Its URL, while it serves these APIs of the chain with all its states."""
    base = [program, "--datadir", str(folder)]
    flags = ["--syncmode", "full", "--gcmode", "archive"]
    for command in (["init", str(files / "genesis.json")], ["import", str(files / "chain.rlp")]):
        subprocess.run([*base, *flags, *command], check=True, capture_output=True)
    quiet = ["--nodiscover", "--maxpeers", "0", "--ipcdisable", "--port", "0"]
    ports = ["--http", "--http.port", "0", "--http.api", apis, "--authrpc.port", "0"]
    process = subprocess.Popen(
        [*base, *flags, *quiet, *ports], stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stderr is not None
    try:
        yield f"http://{endpoint(process.stderr)}"
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def endpoint(log: IO[str]) -> str:
    """The address that geth logs once it serves; the rest of its log is read and dropped."""
    said = []
    for line in log:
        said.append(line)
        if SERVED in line and "auth=false" in line:
            threading.Thread(target=log.read, daemon=True).start()
            return next(word for word in line.split() if word.startswith("endpoint="))[9:]
    raise SystemExit("geth ended before it served:\n" + "".join(said[-5:]))
