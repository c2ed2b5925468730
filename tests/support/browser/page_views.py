"""Every view of the page, beside a dev chain, for tests that look at all of them."""

import json
from collections.abc import Callable, Iterator

from support.browser.tab import Tab
from support.servers.dev_processes import Dev, Network
from support.servers.waiting import until

TOKEN = "0x7e57000000000000000000000000000000000020"  # noqa: S105, an address
TRANSFER = "transfer(address to, uint256 amount) returns (bool)"
SELECTOR = "0xa9059cbb"
LIVE = "document.querySelectorAll('.network[data-state=live]').length"
MANY = 10**30  # more than anybody has

View = tuple[str, Callable[[Tab], object]]


def views(dev: Dev) -> Iterator[View]:
    """The name of each view, and what opens it in a tab that shows the page."""
    chain = dev.main
    owner, other = chain.ask("eth_accounts")[:2]
    word = other[2:].rjust(64, "0")
    paid = _send(chain, {"from": owner, "to": TOKEN, "data": f"{SELECTOR}{word}{10**18:064x}"})
    failed = _send(chain, {"from": owner, "to": TOKEN, "data": f"{SELECTOR}{word}{MANY:064x}"})
    number = int(chain.ask("eth_getTransactionReceipt", paid)["blockNumber"], 16)
    until(lambda: chain.latest() > number, "their block is sealed")
    yield "overview", _route("")
    yield "block", _route(f"main/block/{number}", "Parent")
    yield "flashblock", _route(f"main/block/{number}.0", "after flashblock 0")
    yield "pending", _route("main/block/pending", "in progress")
    yield "no-block", _route("main/block/99999999", "no such block")
    yield "transaction", _with_opened(f"main/tx/{paid}", "Transfer")
    yield "failed-transaction", _with_opened(f"main/tx/{failed}", "ERC20InsufficientBalance")
    yield "unknown-transaction", _route(f"main/tx/0x{'ab' * 32}", "No block and no flashblock has")
    yield "account", _route(f"main/address/{owner}", "Last transactions")
    yield "contract", _with_opened(f"main/address/{TOKEN}", "Supply")
    yield "call", _call(owner)
    yield "console", _route("main/dev", "Random faults")
    yield "help", _help
    yield "search-error", _search_error


def _send(chain: Network, fields: dict[str, str]) -> str:
    """Send a transaction; return its hash when it is in a block."""
    sent: str = chain.ask("eth_sendTransaction", {"gas": hex(200_000), **fields})
    until(lambda: chain.ask("eth_getTransactionReceipt", sent), "it is in a flashblock")
    return sent


def _route(route: str, text: str = "") -> Callable[[Tab], object]:
    def show(tab: Tab) -> None:
        tab.evaluate(f"document.querySelector('#help').close(); location.hash = '#/{route}'")
        if text:
            _wait(tab, text)
        else:
            tab.wait("document.querySelector('#sheet').hidden", "no details")

    return show


def _wait(tab: Tab, text: str) -> None:
    """Wait for a text of the sheet; headings are shown in capitals, so this is not what shows."""
    content = "document.querySelector('#sheet').textContent"
    tab.wait(f"{content}.includes({json.dumps(text)})", f"{text!r} is in the sheet")


def _with_opened(route: str, text: str) -> Callable[[Tab], object]:
    def show(tab: Tab) -> None:
        _route(route, text)(tab)
        opened = "document.querySelectorAll('#sheet details').forEach((e) => { e.open = true; })"
        tab.evaluate(opened)
        waits = "[...document.querySelectorAll('#sheet details .quiet')]"
        tab.wait(f"!{waits}.some((e) => e.innerText === '…')", "all parts are loaded")

    return show


def _call(owner: str) -> Callable[[Tab], object]:
    def show(tab: Tab) -> None:
        _route(f"main/call/{TOKEN}", "Simulate")(tab)
        given = {"signature": TRANSFER, "arguments": f"{owner}, {MANY}", "from": owner}
        for name, text in given.items():
            field = f"document.querySelector('#sheet [name={name}]')"
            tab.evaluate(f"{field}.value = {json.dumps(text)}")
        tab.click("#sheet [name=call]")
        _wait(tab, "ERC20InsufficientBalance")
        tab.evaluate("document.querySelector('#sheet [name=arguments]').value = 'nothing'")
        tab.click("#sheet [name=simulate]")
        _wait(tab, "arguments are needed")
        tab.evaluate(f"document.querySelector('#sheet [name=arguments]').value = '{owner}, 25e17'")
        tab.click("#sheet [name=simulate]")
        _wait(tab, "Transfer")

    return show


def _help(tab: Tab) -> None:
    _route("")(tab)
    tab.click("#keys")
    tab.wait("document.querySelector('#help').open", "the help")


def _search_error(tab: Tab) -> None:
    _route("")(tab)
    tab.press("/")
    tab.type("nonsense")
    tab.press("Enter")
    tab.wait_for_text("#unfound", "is needed")
