"""Simulations beside geth: random payloads to both, and every difference reported.

    python tests/differential/run.py --geth GETH --chain DIR [--seed N] [--count N]

GETH is geth 1.17.2, DIR a folder with genesis.json and chain.rlp. Both import the chain;
then each payload is asked of geth and of foreblock in the `ethereum` dialect, and the
answers are compared field by field. The first that differs is made as small as it can be
and printed. `docs/simulate-differences.md` lists what is known to differ and not reported.
"""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from asking import Asker, asker
from differential.known import plain
from differential.payloads import Json, payloads
from foreblock.client import Endpoint
from foreblock.conformance.compare import differences
from foreblock.errors import EndpointError, Refused
from foreblock.ledger.import_files import import_files
from foreblock.ledger.view import Ledger


def main() -> None:
    """Compare, and exit with 1 at the first difference."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--geth", required=True)
    parser.add_argument("--chain", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        files = chosen.chain
        import_files(files / "genesis.json", files / "chain.rlp", store, None, lambda _: None)
        ledger = Ledger.open(str(store))
        with (
            geth(chosen.geth, files, Path(folder) / "geth") as url,
            Endpoint(url) as endpoint,
            asker(ledger, "ethereum", call_timeout_ms=60_000) as ours,
        ):
            kinds = compare(ours, endpoint, chosen.seed, chosen.count)
        ledger.close()
    lines = [f"{kinds.total()} payloads of seed {chosen.seed}, no difference"]
    lines += [f"  {count:>6} {kind}" for kind, count in kinds.most_common()]
    sys.stdout.write("\n".join(lines) + "\n")


def compare(ours: Asker, theirs: Endpoint, start: int, count: int) -> Counter[str]:
    """Ask both; raises with the smallest payload that is answered differently."""
    kinds: Counter[str] = Counter()

    @seed(start)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(payload=payloads())
    def one(payload: Json) -> None:
        found, expected = ours.ask("eth_simulateV1", payload, "0x36"), ask(theirs, payload)
        kinds["refused " + str(expected["code"]) if "code" in expected else "simulated"] += 1
        unlike = differences(*plain(expected, found))
        if unlike:
            told = "\n".join(map(str, unlike[:12]))
            raise AssertionError(f"{json.dumps(payload)}\n{told}")

    one()
    return kinds


def ask(endpoint: Endpoint, payload: Json) -> Any:  # noqa: ANN401, it is JSON
    """The result, or the error object."""
    try:
        return endpoint.request("eth_simulateV1", [payload, "0x36"])
    except Refused as refused:
        return {"code": refused.code, "message": refused.message}


@contextmanager
def geth(program: str, files: Path, folder: Path) -> Iterator[str]:
    """A geth that has imported the chain and serves it; ended afterwards."""
    base = [program, "--datadir", str(folder), "--verbosity", "1"]
    subprocess.run([*base, "init", str(files / "genesis.json")], check=True)
    flags = ["--syncmode", "full", "--gcmode", "archive"]
    subprocess.run(
        [*base, *flags, "import", str(files / "chain.rlp")], check=True, capture_output=True
    )
    http, auth = free_port(), free_port()
    serving = ["--nodiscover", "--maxpeers", "0", "--ipcdisable", "--port", "0", "--http"]
    ports = ["--http.port", str(http), "--authrpc.port", str(auth)]
    process = subprocess.Popen([*base, *flags, *serving, *ports], stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{http}"
        wait(url)
        yield url
    finally:
        process.terminate()
        process.wait()


def wait(url: str) -> None:
    """Until the head of the chain is served."""
    for _ in range(300):
        try:
            with Endpoint(url) as endpoint:
                if endpoint.request("eth_blockNumber", []) == "0x36":
                    return
        except EndpointError:
            pass
        time.sleep(0.1)
    raise SystemExit("geth does not serve the chain")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port: int = opened.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
