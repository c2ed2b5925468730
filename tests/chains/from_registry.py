"""Generate the presets from a git checkout of the superchain registry.

    python tests/chains/from_registry.py GIT_DIR

GIT_DIR is a clone of github.com/ethereum-optimism/superchain-registry. The tables below have what
the registry lacks, flashblocks and their feeds, with sources.
"""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

PRESETS = Path(__file__).resolve().parents[2] / "python" / "foreblock" / "chains" / "presets"
REGISTRY = "https://github.com/ethereum-optimism/superchain-registry/blob"
FORKS = ("canyon", "ecotone", "fjord", "granite", "holocene", "isthmus", "jovian", "karst")
# Keys of the registry that change how blocks are derived from L1, but not their execution.
WITHOUT_EFFECT = {"delta_time", "pectra_blob_schedule_time", "keep_karst_upgrade_gas"}

CHAINS = {
    "op-mainnet": "mainnet/op", "op-sepolia": "sepolia/op",
    "unichain": "mainnet/unichain", "unichain-sepolia": "sepolia/unichain",
    "ink": "mainnet/ink", "ink-sepolia": "sepolia/ink",
    "soneium": "mainnet/soneium", "soneium-minato": "sepolia/soneium-minato",
    "worldchain": "mainnet/worldchain", "worldchain-sepolia": "sepolia/worldchain",
    "mode": "mainnet/mode", "mode-sepolia": "sepolia/mode",
    "zora": "mainnet/zora", "zora-sepolia": "sepolia/zora",
    "lisk": "mainnet/lisk", "lisk-sepolia": "sepolia/lisk",
    "metal": "mainnet/metal", "metal-sepolia": "sepolia/metal",
    "bob": "mainnet/bob", "mint": "mainnet/mint", "superseed": "mainnet/sseed",
    "polynomial": "mainnet/polynomial",
}  # fmt: skip

SUBBLOCKS = "https://github.com/ethereum-optimism/optimism/blob/develop/docs/public-docs/notices/subblocks.mdx"
UNICHAIN = "https://www.alchemy.com/docs/reference/unichain-flashblocks-api-quickstart"
FEED = "https://github.com/ethereum-optimism/optimism/issues/19382"
# Interval in milliseconds, sources, feeds.
FLASHBLOCKS: dict[str, tuple[int, list[str], list[str]]] = {
    "op-mainnet": (200, [SUBBLOCKS, FEED], ["wss://op-mainnet-fb-ws-pub.optimism.io/ws"]),
    "op-sepolia": (200, [SUBBLOCKS], []),
    "unichain": (200, [UNICHAIN], []),
    "unichain-sepolia": (200, [UNICHAIN], []),
}
UNKNOWN = {
    "op-mainnet": ["whether the feed accepts connections: people report 429 and failed handshakes"],
    "op-sepolia": ["the address of a public feed"],
    "unichain": ["the address of a public feed"],
    "unichain-sepolia": ["the address of a public feed"],
    "worldchain": ["interval and feed of its flashblocks"],
    "worldchain-sepolia": ["interval and feed of its flashblocks"],
}


def main() -> None:
    """Write all files."""
    repository = sys.argv[1]
    commit = git(repository, "rev-parse", "HEAD").strip()
    for name, path in CHAINS.items():
        place = f"superchain/configs/{path}.toml"
        chain = tomllib.loads(git(repository, "show", f"HEAD:{place}"))
        group = f"superchain/configs/{path.split('/')[0]}/superchain.toml"
        l1 = tomllib.loads(git(repository, "show", f"HEAD:{group}"))["l1"]["chain_id"]
        text = preset(name, chain, l1, f"{REGISTRY}/{commit}/{place}")
        (PRESETS / f"{name}.toml").write_text(text, "utf-8")


def git(repository: str, *arguments: str) -> str:
    command = ["git", "-C", repository, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def preset(name: str, chain: dict[str, Any], l1: int, source: str) -> str:
    """The file of one chain."""
    assert chain["data_availability_type"] == "eth-da", name
    forks, fees, genesis = chain["hardforks"], chain["optimism"], chain["genesis"]
    assert set(forks) <= {f"{fork}_time" for fork in FORKS} | WITHOUT_EFFECT, forks
    absent = [fork for fork in FORKS if f"{fork}_time" not in forks]
    unknown = [f"when {fork.title()} begins, if it does" for fork in absent]
    lines = [
        f'name = "{name}"',
        f'title = "{chain["name"]}"',
        f"chain_id = {chain['chain_id']}",
        f"l1_chain_id = {l1}",
        f"block_time = {chain['block_time']}",
        f'source = "{source}"',
        *listed("unknown", [*unknown, *UNKNOWN.get(name, [])]),
        "",
        "[genesis]",
        f"number = {genesis['l2']['number']}",
        f'hash = "{genesis["l2"]["hash"]}"',
        f"time = {genesis['l2_time']}",
        "",
        "[forks]",
        *(f"{fork} = {forks[f'{fork}_time']}" for fork in FORKS if fork not in absent),
        "",
        "[fees]",
        f"elasticity = {fees['eip1559_elasticity']}",
        f"denominator = {fees['eip1559_denominator']}",
        f"denominator_canyon = {fees['eip1559_denominator_canyon']}",
        "",
        "[endpoints]",
        f'rpc = "{chain["public_rpc"]}"',
        f'sequencer = "{chain["sequencer_rpc"]}"',
    ]
    if name in FLASHBLOCKS:
        interval, where, feeds = FLASHBLOCKS[name]
        lines += ["", "[flashblocks]", f"interval_ms = {interval}", *listed("sources", where)]
        lines += listed("feeds", feeds)
    return "\n".join(lines) + "\n"


def listed(key: str, texts: list[str]) -> list[str]:
    """A list of texts, one per line; empty for an empty list."""
    return [f"{key} = [", *(f'    "{each}",' for each in texts), "]"] if texts else []


if __name__ == "__main__":
    main()
