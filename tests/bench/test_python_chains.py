"""bench/python_chains.py: the table has what can be measured, and names what is missing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import CHECKOUT


@pytest.mark.heavy
def test_the_table_has_foreblock_and_names_chains_that_are_missing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, CHECKOUT / "bench" / "python_chains.py", f"--peers={tmp_path}",
         "--seconds=0", "--tests=2"],
        capture_output=True, text=True, check=True, env={"PATH": ""},
    )  # fmt: skip
    rows = dict(re.findall(r"^(\w.*?)  +([\d.,]+)(?: \([\d.,]+\))?  ", done.stdout, re.MULTILINE))
    assert {"import", "another chain", "transfer, receipt, balance", "snapshot, revert",
            "call of 10,000 rounds", "2 tests with a fresh chain"} <= rows.keys()  # fmt: skip
    assert all(float(each.replace(",", "")) > 0 for each in rows.values())
    missing = re.findall(r"^(.+): (.+) is not installed$", done.stdout, re.MULTILINE)
    assert {
        ("foreblock", "web3.py"),
        ("eth-tester", "eth_tester"),
        ("eth-tester on foreblock", "eth_tester"),
        ("anvil", "anvil"),
        ("titanoboa", "boa"),
        ("pyrevm", "pyrevm"),
    } == set(missing)
