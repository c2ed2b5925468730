"""Every method has a row and an example in docs/rpc.md; examples answer as shown, also README's."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import CHECKOUT, ChainFiles
from foreblock.ledger.importing.importer import import_files
from foreblock.methods import make_table
from foreblock.service.running import serving
from foreblock.settings import Settings
from foreblock.upstream.rpc_client import Endpoint
from support.each_case import each_case
from support.servers.long_work import scheduler

TEXT = (CHECKOUT / "docs" / "rpc.md").read_text("utf-8")
README = (CHECKOUT / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"^--> (.*)\n<-- (.*)$", TEXT, re.MULTILINE)
CURL = ["curl", "-s", "http://127.0.0.1:8545", "-H", "Content-Type: application/json", "-d"]
for command, shown in re.findall(r"<!-- ask -->\n```console\n\$ (.*)\n(.*)\n```", README):
    *start, body = shlex.split(command)
    assert start == CURL
    EXAMPLES.append((body, shown))


@pytest.fixture(scope="module")
def endpoint(example: ChainFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """The service over the example chain."""
    store: Path = tmp_path_factory.mktemp("docs") / "store"
    files = (example.genesis, example.chain, store, example.fork_choice)
    import_files(*files, lambda _: None, address_index=True)
    with serving(store, ["--workers=1"]) as service, Endpoint(service.url) as opened:
        yield opened


@each_case(("body", "shown"), EXAMPLES)
def test_examples_answer_as_shown(endpoint: Endpoint, body: str, shown: str) -> None:
    """An answer that ends in … is shown in part."""
    answer = endpoint.exchange(body.encode()).decode()
    if shown.endswith("…"):
        assert answer.startswith(shown.removesuffix("…"))
    else:
        assert answer == shown


def test_every_method_has_a_row_and_an_example() -> None:
    served = make_table(Settings(), scheduler(1)).functions
    assert list(served) == re.findall(r"^\| `(\w+[_.]\w+)` \|", TEXT, flags=re.MULTILINE)
    for method in served:
        assert f"\n## `{method}`\n" in TEXT
        assert any(f'"{method}"' in body for body, _ in EXAMPLES)
