"""The projects of examples/ print what they show, and the wallet works in a browser.

`make clients` installs their libraries here and runs this.
"""

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from conftest import CHECKOUT
from support.browser.chromium import running_chromium
from support.browser.tab import opened_tab
from support.servers.client_libraries import HERE, MODULES, program_of, run
from support.servers.dev_processes import Network, dev_chain

EXAMPLES = CHECKOUT / "examples"
PROJECTS = {
    "ethers/pay.mjs": "ethers",
    "web3py/pay.py": "web3.py",
    "websocket-wallet/watch.mjs": "viem",
}


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with dev_chain("--test-listen=", "--workers=1") as dev:
        yield dev.main


@pytest.fixture
def wallet(tmp_path: Path) -> Path:
    """The folder of the wallet after `npm install`, with the libraries of these tests."""
    folder = installed("viem-wallet", tmp_path)
    command = (EXAMPLES / "viem-wallet" / "package.json").read_text("utf-8")
    (bundle,) = re.findall(r'"postinstall": "esbuild (.*)"', command)
    program_of("viem")
    subprocess.run([MODULES / ".bin" / "esbuild", *bundle.split()], cwd=folder, check=True)
    return folder


def installed(project: str, into: Path) -> Path:
    folder = into / project
    shutil.copytree(EXAMPLES / project, folder)
    (folder / "node_modules").symlink_to(MODULES)
    return folder


def test_the_tutorial_quotes_the_wallet() -> None:
    text = (CHECKOUT / "docs" / "tutorial.md").read_text("utf-8")
    quoted = re.findall(r"<!-- (wallet\S+) -->\n```js\n(.*?)```", text, re.DOTALL)
    assert len(quoted) == 4
    for name, part in quoted:
        assert part in (EXAMPLES / "viem-wallet" / name).read_text("utf-8")
    scripts = json.loads((EXAMPLES / "viem-wallet" / "package.json").read_text("utf-8"))["scripts"]
    assert set(re.findall(r"\$ npm (start|test)", text)) == set(scripts) - {"postinstall"}


@pytest.mark.parametrize("file", PROJECTS)
def test_a_project_prints_what_it_shows(network: Network, tmp_path: Path, file: str) -> None:
    project, name = file.split("/")
    program = installed(project, tmp_path) / name
    comment = program.read_text("utf-8").partition("import ")[0]
    shown = re.findall(r"^(?:// {5}| {4})(\S.*)$", comment, re.MULTILINE)
    assert len(shown) > 1
    urls = {"RPC_URL": network.url, "WS_URL": network.url.replace("http", "ws")}
    said = run(PROJECTS[file], program.name, cwd=program.parent, variables=urls)
    assert said.splitlines() == shown


def test_the_wallet_takes_back_a_lost_pre_confirmation(network: Network, wallet: Path) -> None:
    said = run("viem", "--test", cwd=wallet, variables={"RPC_URL": network.url})
    assert "# pass 1" in said


MOST_PAYMENTS = 12
# Keeps all texts of the list, also those that are replaced before the test looks.
RECORDING = """
window.shown = ''
new MutationObserver(() => { shown += document.querySelector('#payments').textContent }).observe(
  document.querySelector('#payments'), { childList: true, subtree: true, characterData: true })
"""


def test_the_page_of_the_wallet_shows_a_payment_before_its_block(
    network: Network, wallet: Path
) -> None:
    handler = partial(SimpleHTTPRequestHandler, directory=str(wallet))
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        running_chromium() as browser,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/index.html?rpc={network.url}"
        with opened_tab(browser, url) as tab:
            tab.wait_for_text("#balance", "0 ETH")
            tab.evaluate(RECORDING)
            # A payment in the last flashblock of a block may be sealed before the page looks.
            payments = 0
            while payments == 0 or not tab.evaluate("shown.includes('pre-confirmed')"):
                payments += 1
                assert payments < MOST_PAYMENTS
                tab.click("#send")
                last = f"document.querySelector('#payments li:nth-child({payments})')?.textContent"
                tab.wait(f"{last}?.includes('sealed')", "a sealed payment")
            tab.wait_for_text("#balance", f"{payments} ETH")
        server.shutdown()


def test_projects_have_the_versions_that_are_tested() -> None:
    locked = (HERE / "requirements.in").read_text("utf-8").split()
    assert set((EXAMPLES / "web3py" / "requirements.txt").read_text("utf-8").split()) <= set(locked)
    packages = json.loads((HERE / "package-lock.json").read_text("utf-8"))["packages"]
    for file in EXAMPLES.glob("*/package.json"):
        for library, version in json.loads(file.read_text("utf-8"))["dependencies"].items():
            assert packages[f"node_modules/{library}"]["version"] == version
