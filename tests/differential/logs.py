"""Logs compared with geth: random filters to both, and every difference reported.

    python tests/differential/logs.py --geth GETH [--chain DIR] [--seed N] [--count N] [--record]

GETH is geth 1.17.2, DIR a folder with genesis.json and chain.rlp; without it, the chain of
`support.chains.log_chain` is built. Both import it; then each filter is sent to geth and to
foreblock in the `ethereum` dialect. With `--record`, geth's responses to the filters of
`tests/methods/test_logs_of_geth.py` are written to the file that this test reads.
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from differential.geth import geth
from foreblock.errors import ErrorAnswer
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.upstream.rpc_client import Endpoint
from methods.test_logs_of_geth import ANSWERS, recorded_queries
from support.chains import log_chain
from support.servers.asking import Asker, asker
from support.strategies.log_queries import Json, all_logs, digest, queries


def main() -> None:
    """Compare, and exit with 1 if responses differ."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--geth", required=True)
    parser.add_argument("--chain", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--record", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = chosen.chain or folder
        if chosen.chain is None:
            log_chain.write(folder)
        store = folder / "store"
        import_files(files / "genesis.json", files / "chain.rlp", store, None, lambda _: None)
        ledger = Ledger.open(str(store))
        with (
            geth(chosen.geth, files, folder / "geth") as url,
            Endpoint(url) as endpoint,
            asker(ledger, "ethereum") as ours,
        ):
            if chosen.record:
                answers = [digest(ask(endpoint, each)) for each in recorded_queries(ours)]
                lines = ",\n".join(map(json.dumps, answers))
                ANSWERS.write_text(f"[\n{lines}\n]\n", "utf-8")
            differing = compare(ours, endpoint, chosen.seed, chosen.count)
        ledger.close()
    sys.exit(differing > 0)


def compare(ours: Asker, theirs: Endpoint, seed: int, count: int) -> int:
    """Send each request to both; print the differences, and return their number."""
    last = int(ours.ask("eth_blockNumber"), 16)
    hashes = [
        ours.ask("eth_getBlockByNumber", hex(each), False)["hash"] for each in range(last + 1)
    ]
    logs = all_logs(ours, last)
    chance = random.Random(seed)
    kinds: Counter[str] = Counter()
    for asked in queries(chance, logs, hashes, count):
        found, expected = ours.ask("eth_getLogs", asked), ask(theirs, asked)
        if found != expected:
            kinds["differ"] += 1
            print(json.dumps(asked), json.dumps(expected)[:300], json.dumps(found)[:300], sep="\n")  # noqa: T201
        else:
            kinds["some" if isinstance(found, list) and found else str(found)[:80]] += 1
    lines = [f"{len(logs)} logs in {last + 1} blocks, {count} filters of seed {seed}"]
    lines += [f"  {number:>6} {kind}" for kind, number in kinds.most_common()]
    sys.stdout.write("\n".join(lines) + "\n")
    return kinds["differ"]


def ask(endpoint: Endpoint, asked: Json) -> Any:  # noqa: ANN401, it is JSON
    """Return the result, or the error object."""
    try:
        return endpoint.request("eth_getLogs", [asked])
    except ErrorAnswer as refused:
        return {"code": refused.code, "message": refused.message}


if __name__ == "__main__":
    main()
