"""Traces compared with geth: every tracer over every block, and calls of random code.

    python tests/differential/traces.py --geth GETH --chain DIR [--seed N] [--count N]

GETH is geth 1.17.2, DIR a folder with genesis.json and chain.rlp. Both import the chain. All
transactions are traced by both with every tracer, then random code is run in calls on blocks of all
forks; any difference is printed and the exit code is 1. With `--record` geth's responses for the
chain are written to a file, which `tests/methods/test_traces.py` compares with.
"""

import argparse
import gzip
import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from differential.geth import geth
from differential.random_code import random_call
from foreblock.conformance.compare import differences
from foreblock.errors import ErrorAnswer
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.upstream.rpc_client import Endpoint
from support.servers.asking import Asker, asker

# Constantinople runs as Petersburg, without EIP-1283 (`docs/trace-differences.md`).
UNLIKE = (12, 13, 14)
# The first block with EIP-7702; before it no account can have such code.
PRAGUE = 45
BERLIN = 24  # the first block with access lists
RECORDED = 250  # calls of random code, and as many access lists
SHOWN = 12  # differences of one response

CONFIGS: dict[str, dict[str, Any]] = {
    "steps": {},
    "steps-all": {"enableMemory": True, "enableReturnData": True},
    "steps-few": {"disableStack": True, "disableStorage": True, "limit": 2000},
    "calls": {"tracer": "callTracer"},
    "calls-logs": {"tracer": "callTracer", "tracerConfig": {"withLog": True}},
    "calls-top": {"tracer": "callTracer", "tracerConfig": {"onlyTopCall": True, "withLog": True}},
    "flat": {"tracer": "flatCallTracer"},
    "flat-parity": {"tracer": "flatCallTracer", "tracerConfig": {"convertParityErrors": True}},
    "flat-all": {"tracer": "flatCallTracer", "tracerConfig": {"includePrecompiles": True}},
    "prestate": {"tracer": "prestateTracer"},
    "prestate-few": {
        "tracer": "prestateTracer",
        "tracerConfig": {"disableCode": True, "disableStorage": True, "includeEmpty": True},
    },
    "diff": {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}},
    "selectors": {"tracer": "4byteTracer"},
    "nothing": {"tracer": "noopTracer"},
}


def main() -> None:
    """Compare, and exit with 1 on any difference."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--geth", required=True)
    parser.add_argument("--chain", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--most", type=int, default=10, help="shown differences")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--no-blocks", dest="blocks", action="store_false")
    chosen = parser.parse_args()
    files: Path = chosen.chain
    sys.setrecursionlimit(100_000)  # calls go a thousand deep
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        import_files(files / "genesis.json", files / "chain.rlp", store, None, lambda _: None)
        ledger = Ledger.open(str(store))
        with (
            geth(chosen.geth, files, Path(folder) / "geth", "eth,debug") as url,
            Endpoint(url, timeout=120) as endpoint,
            asker(ledger, "ethereum", trace_output=1 << 30) as ours,
        ):
            blocks = list(chain(ours, endpoint)) if chosen.blocks else []
            random_calls = list(calls(ours, endpoint, chosen.seed, chosen.count))
            lists = list(access_lists(ours, endpoint, chosen.seed, chosen.count // 4))
            if chosen.record:
                record(chosen.record, blocks, random_calls[:RECORDED] + lists[:RECORDED])
            compared = blocks + random_calls + lists
        ledger.close()
    unlike = 0
    for name, params, theirs, mine in compared:
        found = differences(plain(theirs), plain(mine))
        if found:
            unlike += 1
            if unlike <= chosen.most:
                told = "\n  ".join(map(str, found[:SHOWN]))
                sys.stdout.write(f"{name} {json.dumps(params)[:600]}\n  {told}\n")
    sys.stdout.write(f"{len(compared)} traces compared, {unlike} differ\n")
    sys.exit(1 if unlike else 0)


Compared = tuple[str, list[Any], Any, Any]


def chain(ours: Asker, theirs: Endpoint) -> Iterator[Compared]:
    """All transactions of the chain, block by block, with every tracer."""
    last = int(ours.ask("eth_blockNumber"), 16)
    for number in range(1, last + 1):
        for name, config in CONFIGS.items():
            params = [hex(number), config]
            method = "debug_traceBlockByNumber"
            yield name, params, ask(theirs, method, params), ours.ask(method, *params)


def calls(ours: Asker, theirs: Endpoint, seed: int, count: int) -> Iterator[Compared]:
    """Calls of random code, on blocks of all forks."""
    chance = random.Random(seed)
    last = int(ours.ask("eth_blockNumber"), 16)
    for _ in range(count):
        call, overrides = random_call(chance)
        name = chance.choice(list(CONFIGS))
        config = CONFIGS[name] | {"stateOverrides": overrides}
        number = chance.choice([each for each in range(1, last + 1) if each not in UNLIKE])
        if number < PRAGUE and any(is_delegated(each) for each in overrides.values()):
            continue
        params = [call, hex(number), config]
        method = "debug_traceCall"
        yield name, params, ask(theirs, method, params), ours.ask(method, *params)


def access_lists(ours: Asker, theirs: Endpoint, seed: int, count: int) -> Iterator[Compared]:
    """Access lists of random code, on blocks from Berlin on."""
    chance = random.Random(seed)
    last = int(ours.ask("eth_blockNumber"), 16)
    for _ in range(count):
        call, overrides = random_call(chance)
        number = chance.randint(BERLIN, last)
        if number < PRAGUE and any(is_delegated(each) for each in overrides.values()):
            continue
        params = [call | {"gasPrice": hex(10**11)}, hex(number), overrides]
        method = "eth_createAccessList"
        yield method, params, ask(theirs, method, params), ours.ask(method, *params)


def is_delegated(account: dict[str, Any]) -> bool:
    """Return whether the code of an account is a delegation."""
    return bool(account.get("code", "").startswith("0xef0100"))


def ask(endpoint: Endpoint, method: str, params: list[Any]) -> Any:  # noqa: ANN401, it is JSON
    """Return the result, or the error object."""
    try:
        return endpoint.request(method, params)
    except ErrorAnswer as refused:
        return {"code": refused.code, "message": refused.message}


def plain(answer: Any) -> Any:  # noqa: ANN401, it is JSON
    """A response with the prefixes that newer versions add to words, and of errors only the
    codes.
    """
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    if "code" in answer and "message" in answer:
        return {"code": answer["code"]}
    if "pc" in answer:
        if "error" in answer:
            answer.pop("refund", None)
        return answer | {
            name: value
            for name, value in (
                ("memory", [prefixed(word) for word in answer.get("memory", [])] or None),
                (
                    "storage",
                    {
                        prefixed(slot): prefixed(value)
                        for slot, value in answer.get("storage", {}).items()
                    }
                    or None,
                ),
            )
            if value is not None
        }
    return {name: plain(value) for name, value in answer.items()}


def prefixed(word: str) -> str:
    """A word with 0x before it."""
    return word if word.startswith("0x") else "0x" + word


def digest(answer: Any) -> str:  # noqa: ANN401, it is JSON
    """Return a digest of a response."""
    text = json.dumps(plain(answer), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def record(path: Path, blocks: list[Compared], calls: list[Compared]) -> None:
    """Record geth's responses: whole if they are short, otherwise their digests."""
    asked = [(name, params, digest(theirs)) for name, params, theirs, _ in calls]
    kept: dict[str, Any] = {"calls of random code": asked}
    for name, (number, _), theirs, _ in blocks:
        short = not name.startswith("steps")
        kept.setdefault(name, {})[number] = plain(theirs) if short else digest(theirs)
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
