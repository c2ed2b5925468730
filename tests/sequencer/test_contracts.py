"""The compiled contracts match their sources, and their storage layout matches its readers."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

# op-stack: the slots from which execution reads the attributes; bytes from the low end of the slot.
L1_BLOCK_SLOTS = {
    "number": (0, 0, "t_uint64"),
    "timestamp": (0, 8, "t_uint64"),
    "basefee": (1, 0, "t_uint256"),
    "hash": (2, 0, "t_bytes32"),
    "sequenceNumber": (3, 0, "t_uint64"),
    "blobBaseFeeScalar": (3, 8, "t_uint32"),
    "baseFeeScalar": (3, 12, "t_uint32"),
    "batcherHash": (4, 0, "t_bytes32"),
    "l1FeeOverhead": (5, 0, "t_uint256"),
    "l1FeeScalar": (6, 0, "t_uint256"),
    "blobBaseFee": (7, 0, "t_uint256"),
    "operatorFeeConstant": (8, 0, "t_uint64"),
    "operatorFeeScalar": (8, 8, "t_uint32"),
    "daFootprintGasScalar": (8, 12, "t_uint16"),
}
SLOTS = {
    "BaseTime": {"timestampMillisPart": (0, 0)},
    "GasPriceOracle": {},
    "L1Block": {name: (slot, offset) for name, (slot, offset, _) in L1_BLOCK_SLOTS.items()},
    "L1BlockBeforeJovian": {
        name: (slot, offset)
        for name, (slot, offset, _) in L1_BLOCK_SLOTS.items()
        if name != "daFootprintGasScalar"
    },
    "L2ToL1MessagePasser": {"sentMessages": (0, 0), "_count": (1, 0)},
    "Multicall3": {},
    "Token": {"balanceOf": (0, 0), "allowance": (1, 0), "totalSupply": (2, 0)},
    "WETH9": {"name": (0, 0), "symbol": (1, 0), "decimals": (2, 0), "balanceOf": (3, 0),
              "allowance": (4, 0)},
}  # fmt: skip


@pytest.fixture(scope="module")
def layout(checkout: Path) -> dict[str, list[dict[str, object]]]:
    text = (checkout / "contracts" / "storage-layout.json").read_text("utf-8")
    layout: dict[str, list[dict[str, object]]] = json.loads(text)
    return layout


def test_every_variable_is_where_it_must_be(layout: dict[str, list[dict[str, object]]]) -> None:
    found = {
        contract: {each["label"]: (each["slot"], each["offset"]) for each in variables}
        for contract, variables in layout.items()
    }
    assert found == SLOTS


def test_attributes_have_the_types_that_are_read(
    layout: dict[str, list[dict[str, object]]],
) -> None:
    found = {
        each["label"]: (each["slot"], each["offset"], each["type"]) for each in layout["L1Block"]
    }
    assert found == L1_BLOCK_SLOTS


@pytest.mark.heavy
def test_committed_output_is_what_the_sources_compile_to(checkout: Path, tmp_path: Path) -> None:
    """Requires node, and npm once to fetch the compiler; otherwise skipped with a message."""
    folder = tmp_path / "contracts"
    shutil.copytree(checkout / "contracts", folder, ignore=shutil.ignore_patterns("node_modules"))
    install_compiler(checkout / "contracts", folder)
    out = tmp_path / "out"
    out.mkdir()
    built = run("node", folder / "build.mjs", out, cwd=folder)
    assert built.returncode == 0, built.stderr
    for name, committed in (
        ("contracts.json", checkout / "python" / "foreblock" / "sequencer" / "contracts.json"),
        ("storage-layout.json", checkout / "contracts" / "storage-layout.json"),
    ):
        assert (out / name).read_bytes() == committed.read_bytes(), f"{name} is out of date"


def install_compiler(source: Path, folder: Path) -> None:
    """The locked compiler, from a previous `npm ci` or from the registry."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"contracts NOT recompiled: {tool} is missing")
    installed = source / "node_modules"
    if installed.is_dir():
        (folder / "node_modules").symlink_to(installed)
        return
    try:
        fetched = run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
    except subprocess.TimeoutExpired:
        pytest.skip("contracts NOT recompiled: npm did not answer")
    if fetched.returncode != 0:
        why = next((line for line in fetched.stderr.splitlines() if "error" in line), "no reason")
        pytest.skip(f"contracts NOT recompiled: npm failed: {why}")


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
