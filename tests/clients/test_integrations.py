"""The packages of integrations/: their tests, and the programs of their pages.

Each runs in the environment of its tool. This project's packages come after those of the tool,
whose versions differ.
"""

import os
import re
from pathlib import Path

from support.servers.client_libraries import HERE, IN_PROCESS, run

CHECKOUT = HERE.parents[1]
# Of this project's own configuration nothing holds there.
ALONE = ("-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider")
START = """
import runpy, sys
sys.path[:0] = [{package!r}, {cwd!r}]
sys.path += {paths!r}
sys.argv = {arguments!r}
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""


def python(tool: str, *arguments: str, home: Path, cwd: Path) -> str:
    """Return the output of `python -m` with a tool and its integration."""
    program = START.format(
        package=str(CHECKOUT / "integrations" / tool),
        cwd=str(cwd),
        paths=IN_PROCESS["PYTHONPATH"].split(os.pathsep),
        arguments=list(arguments),
        module=arguments[0],
    )
    variables = {"HOME": str(home), "NO_COLOR": "1"}  # tools keep caches in it
    return run(tool, "-c", program, cwd=cwd, variables=variables)


def passed(told: str) -> int:
    """The number of tests that a run of pytest reports; no other outcome is there."""
    found = re.fullmatch(r"(\d+) passed in .*", told.splitlines()[-1])
    assert found is not None, told
    return int(found[1])


def programs(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def test_titanoboa_passes_its_tests(tmp_path: Path) -> None:
    folder = CHECKOUT / "integrations" / "titanoboa"
    told = python("titanoboa", "pytest", "-q", *ALONE, "tests", home=tmp_path, cwd=folder)
    assert passed(told) >= 18


def test_the_program_of_the_page_about_titanoboa_runs(tmp_path: Path) -> None:
    (program,) = programs(CHECKOUT / "integrations" / "titanoboa" / "README.md")
    (tmp_path / "program.py").write_text(program, "utf-8")
    token = HERE.parent / "tools" / "given" / "Token.vy"
    (tmp_path / "Token.vy").write_bytes(token.read_bytes())
    python("titanoboa", "program", home=tmp_path, cwd=tmp_path)
