"""The published cases against the service of this checkout, in both dialects."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.payloads.cases import METHODS


@pytest.mark.heavy
@pytest.mark.parametrize("dialect", ["preconf", "ethereum"])
def test_every_published_case_of_the_methods_passes(conformance: Path, dialect: str) -> None:
    named = [f"--method={method}" for method in METHODS]
    command = [sys.executable, "-m", "foreblock", "conformance", str(conformance), "--json"]
    done = subprocess.run(
        [*command, *named, f"--dialect={dialect}"], capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout)
    assert [each for each in found["cases"] if each["verdict"] != "passed"] == []
    assert found["methods"].keys() == set(METHODS)
    assert found["passed"] == sum(len(list((conformance / name).iterdir())) for name in METHODS)
    assert done.returncode == 0
