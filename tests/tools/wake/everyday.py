"""wake test, on the chain of the run: the tests are tests/test_token.py of the adjacent project.

wake compiles with a downloaded solc; here it finds npm's under its own name.
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path

from Crypto.Hash import keccak

from given import CLIENTS, OUT, end, run, seal_at_once, step
from suite import run_tests

PROJECT = OUT / "project"
SOLC = Path(__file__).resolve().parents[1] / "given" / "solc.mjs"
VERSION, BUILD = "0.8.30", "commit.73712a01"
NAME = f"solc-linux-amd64-v{VERSION}+{BUILD}"
HOMES = {
    f"XDG_{each}_HOME": str(OUT / each.lower()) for each in ("DATA", "CONFIG", "CACHE", "STATE")
}
VARIABLES = {**HOMES, "NO_COLOR": "1"}
WAKE = Path(sys.executable).with_name("wake")


def lay_out() -> None:
    shutil.copytree(Path(__file__).with_name("project"), PROJECT)
    (PROJECT / "contracts").mkdir()
    shutil.copy(CLIENTS / "Token.sol", PROJECT / "contracts")
    compilers = OUT / "data" / "wake" / "compilers"
    (compilers / NAME).mkdir(parents=True)
    (compilers / NAME / NAME).symlink_to(SOLC)
    bytes_ = SOLC.read_bytes()
    build = {
        "path": NAME, "version": VERSION, "build": BUILD, "longVersion": f"{VERSION}+{BUILD}",
        "keccak256": "0x" + keccak.new(data=bytes_, digest_bits=256).hexdigest(),
        "sha256": "0x" + hashlib.sha256(bytes_).hexdigest(), "urls": [],
    }  # fmt: skip
    listed = {"builds": [build], "releases": {VERSION: NAME}, "latestRelease": VERSION}
    (compilers / "solc.json").write_text(json.dumps(listed), "utf-8")


lay_out()
with step("up pytypes"):
    run([WAKE, "up", "pytypes"], VARIABLES, PROJECT)
seal_at_once()
run_tests([WAKE, "test", "tests/test_token.py"], VARIABLES, PROJECT)
end()
