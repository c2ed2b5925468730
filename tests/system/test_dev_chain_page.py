"""The program of docs/dev-chain.md, run unchanged on a chain of `foreblock dev`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.servers.dev_processes import dev_chain

pytestmark = pytest.mark.heavy

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dev-chain.md"
LOCAL = "127.0.0.1:8545"


def test_the_accident_happens_as_the_page_tells_it(tmp_path: Path) -> None:
    found = re.search(r"<!-- run -->\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    assert LOCAL in found[1]
    program = tmp_path / "test_lost_tail.py"
    with dev_chain("--test-listen=") as dev:
        here = dev.main.url.removeprefix("http://")
        program.write_text(found[1].replace(LOCAL, here), "utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", program.name],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
