"""docs/dev-methods.md: every method of dev chains, and examples that answer as shown."""

import re
import shlex
from pathlib import Path

import pytest

from foreblock.methods import make_families
from foreblock.methods.openrpc.signatures import read_signature
from foreblock.methods.options import Options
from foreblock.methods.sequencing import Sequencing
from support.chains.dev_service import InProcess, dev_service
from support.servers.long_work import scheduler

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "dev-methods.md").read_text("utf-8")
EVERYWHERE = {each.title for each in make_families(Options(), scheduler(1))}
WITH_COMMANDS = make_families(
    Options(),
    scheduler(1),
    Sequencing(commands=InProcess(None)),  # type: ignore[arg-type]
)
FAMILIES = [each for each in WITH_COMMANDS if each.title not in EVERYWHERE]
SECTIONS = re.findall(r"^## `([\w.]+)`\n(.*?)(?=^#{1,2} |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
EXAMPLE = re.compile(r"^\$ (curl .*)\n(.*)$", re.MULTILINE)
CURL = ["curl", "-s", "http://127.0.0.1:8545", "-H", "Content-Type: application/json", "-d"]
ROW = "| `{name}` | {also} | {parameters} |"


def test_page_has_every_method_in_order_with_all_names() -> None:
    methods = [method for family in FAMILIES for method in family.methods]
    assert [name for name, _ in SECTIONS] == [method.name for method in methods]
    for method in methods:
        parameters = read_signature(method.signature).parameters
        names = ", ".join(each.name + ("?" if each.mark == "?" else "") for each in parameters)
        also = ", ".join(f"`{name}`" for name in method.also)
        assert ROW.format(name=method.name, also=also, parameters=names) in PAGE, method.name


@pytest.mark.parametrize(("name", "section"), SECTIONS, ids=[name for name, _ in SECTIONS])
def test_examples_answer_as_shown(tmp_path: Path, name: str, section: str) -> None:
    """On a new chain for each section, which transactions mine; … stands for the rest."""
    examples = EXAMPLE.findall(section)
    assert any(f'"{name}"' in command for command, _ in examples), "it has no example"
    with dev_service(tmp_path) as (_, client):
        for command, shown in examples:
            *start, body = shlex.split(command)
            assert start == CURL
            answer = client.reply(body.encode()).body.decode()
            pattern = ".*".join(map(re.escape, shown.split("…")))
            assert re.fullmatch(pattern, answer), answer
