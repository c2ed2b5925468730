"""Simulations compared with geth: random payloads to both, and every difference reported.

    python tests/differential/run.py --geth GETH --chain DIR [--seed N] [--count N]

GETH is geth 1.17.2, DIR a folder with genesis.json and chain.rlp. Both import the chain; then each
payload is sent to geth and to foreblock in the `ethereum` dialect, on the last block or on an
earlier one, and the responses are compared field by field. The first difference is minimised and
printed. `docs/simulate-differences.md` lists the known differences, which are not reported.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from differential.geth import geth
from differential.known import plain
from differential.payloads import Base, Json, payloads
from foreblock.conformance.compare import differences
from foreblock.errors import ErrorAnswer
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.upstream.rpc_client import Endpoint
from support.servers.asking import Asker, asker


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
            asker(ledger, "ethereum", call_timeout=60.0) as ours,
        ):
            kinds = compare(ours, endpoint, chosen.seed, chosen.count)
        ledger.close()
    lines = [f"{kinds.total()} payloads of seed {chosen.seed}, no difference"]
    lines += [f"  {count:>6} {kind}" for kind, count in kinds.most_common()]
    sys.stdout.write("\n".join(lines) + "\n")


def compare(ours: Asker, theirs: Endpoint, start: int, count: int) -> Counter[str]:
    """Send each payload to both; raise with the smallest one whose responses differ."""
    kinds: Counter[str] = Counter()

    @seed(start)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(asked=payloads(bases(ours)))
    def one(asked: tuple[Base, Json]) -> None:
        base, payload = asked
        params = [payload, hex(base.number)]
        found, expected = ours.ask("eth_simulateV1", *params), ask(theirs, params)
        kinds["refused " + str(expected["code"]) if "code" in expected else "simulated"] += 1
        unlike = differences(*plain(expected, found, unhashed=base.unhashed))
        if unlike:
            told = "\n".join(map(str, unlike[:12]))
            raise AssertionError(f"{json.dumps(params)}\n{told}")

    one()
    return kinds


def bases(ours: Asker) -> list[Base]:
    """The parent blocks of simulations, the last block of the chain at the end."""
    last = int(ours.ask("eth_blockNumber"), 16)
    found = [ours.ask("eth_getBlockByNumber", hex(number), False) for number in range(last + 1)]
    return [Base(int(each["number"], 16), int(each["timestamp"], 16)) for each in found]


def ask(endpoint: Endpoint, params: list[Any]) -> Any:  # noqa: ANN401, it is JSON
    """Return the result, or the error object."""
    try:
        return endpoint.request("eth_simulateV1", params)
    except ErrorAnswer as refused:
        return {"code": refused.code, "message": refused.message}


if __name__ == "__main__":
    main()
