"""The packages of integrations/: their tests, and the examples of their pages.

Each runs in the environment of its tool, as if pip had installed it there. Packages of this
project's environment come after those of the tool, whose versions differ.
"""

import json
import os
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from support.servers.client_libraries import HERE, IN_PROCESS, TOOLS, run
from tools.environments import install

pytestmark = pytest.mark.heavy  # it installs hundreds of packages

INTEGRATIONS = HERE.parents[1] / "integrations"
# Of this project's own configuration nothing holds there.
ALONE = ("-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider", "-p", "no:warnings")
START = """
import runpy, sys
sys.path[:0] = {first!r}
sys.path += {last!r}
sys.argv = {arguments!r}
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def python(tool: str, *arguments: str, home: Path, cwd: Path) -> str:
    """Return the output of `python -m` with a tool and its integration."""
    install(tool)
    program = START.format(
        first=[str(cwd), str(INTEGRATIONS / tool), str(installed(tool, home))],
        last=IN_PROCESS["PYTHONPATH"].split(os.pathsep),
        arguments=list(arguments),
    )
    variables = {"HOME": str(home), "NO_COLOR": "1"}  # tools keep caches in it
    return run(tool, "-c", program, cwd=cwd, variables=variables)


def installed(tool: str, folder: Path) -> Path:
    """Write what pip knows of a package; ape finds its plugins by that."""
    manifest = tomllib.loads((INTEGRATIONS / tool / "pyproject.toml").read_text("utf-8"))
    name, version = manifest["project"]["name"], manifest["project"]["version"]
    known = folder / "installed" / f"{name.replace('-', '_')}-{version}.dist-info"
    known.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (known / "METADATA").write_text(text, "utf-8")
    (package,) = manifest["tool"]["setuptools"]["packages"]
    (known / "top_level.txt").write_text(package, "utf-8")
    return known.parent


def passed(told: str) -> int:
    """The number of tests that a run of pytest reports; it has no other outcome."""
    found = re.fullmatch(r"=* ?(\d+) passed in .*", told.splitlines()[-1])
    assert found is not None, told
    return int(found[1])


def examples(tool: str, language: str) -> list[str]:
    page = (INTEGRATIONS / tool / "README.md").read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_titanoboa_passes_its_tests(tmp_path: Path) -> None:
    folder = INTEGRATIONS / "titanoboa"
    told = python("titanoboa", "pytest", "-q", *ALONE, "tests", home=tmp_path, cwd=folder)
    assert passed(told) == 21


def test_the_program_of_the_page_about_titanoboa_runs(tmp_path: Path) -> None:
    (program,) = examples("titanoboa", "python")
    (tmp_path / "program.py").write_text(program, "utf-8")
    shutil.copy(TOOLS / "given" / "Token.vy", tmp_path)
    python("titanoboa", "program", home=tmp_path, cwd=tmp_path)


def test_ape_passes_its_tests_with_the_configuration_of_its_page(tmp_path: Path) -> None:
    """Those of ape's guide are among them; `run.py` runs them with ape-foundry on anvil."""
    project = tmp_path / "project"
    shutil.copytree(TOOLS / "ape" / "project", project)
    shutil.copytree(INTEGRATIONS / "ape" / "tests", project / "tests", dirs_exist_ok=True)
    compiled = json.loads((HERE / "token.json").read_bytes())
    artifact = {
        "contractName": "Token",
        "abi": compiled["abi"],
        "deploymentBytecode": {"bytecode": compiled["initCode"]},
        "runtimeBytecode": {"bytecode": compiled["code"]},
    }
    (configuration,) = examples("ape", "yaml")
    (project / "ape-config.yaml").write_text(configuration, "utf-8")
    (project / "contracts").mkdir()
    (project / "contracts" / "Token.json").write_text(json.dumps(artifact), "utf-8")
    (project / "ape_command.py").write_text("from ape._cli import cli\n\ncli()\n", "utf-8")
    told = python("ape", "ape_command", "test", home=tmp_path, cwd=project)
    assert passed(told) == 12 + 15
