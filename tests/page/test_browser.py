"""The page in a real browser, beside live dev chains."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from foreblock._engine import keccak256
from foreblock.service.running import free_port
from support.browser.chromium import Browser
from support.browser.tab import Tab, opened_tab
from support.each_case import sampled
from support.servers.dev_processes import Dev, Network, dev_chain
from support.servers.waiting import PATIENCE, until

TOKEN = "0x7e57000000000000000000000000000000000020"  # noqa: S105, an address
ORACLE = "0x420000000000000000000000000000000000000f"
OVERHEAD = "0x0c18c162"  # overhead(), which always reverts
WHY = "GasPriceOracle: overhead() is deprecated"
LIVE = "document.querySelectorAll('.network[data-state=live]').length"
NO_WEBSOCKET = """
window.WebSocket = class { constructor() { setTimeout(() => this.onclose?.(), 1); } close() {} };
"""
# A page hidden for a minute counts as hidden for long; here a minute takes no time.
SHORT_MINUTES = """
const wait = window.setTimeout;
window.setTimeout = (call, after, ...rest) => wait(call, after === 60000 ? 1 : after, ...rest);
let hidden = false;
Object.defineProperty(document, "hidden", { get: () => hidden });
window.hide = (value) => {
  hidden = value;
  document.dispatchEvent(new Event("visibilitychange"));
};
"""
# A page that has loaded all data, and subscribes on command.
LATE_SUBSCRIPTION = """
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (text) {
  if (!text.includes("newFlashblocks")) return send.call(this, text);
  const { id } = JSON.parse(text);
  const hear = ({ data }) => { window.listens ||= JSON.parse(data).id === id; };
  this.addEventListener("message", hear);
  window.subscribe = () => send.call(this, text);
};
"""
# A page whose requests for transactions of earlier blocks leave on command.
HELD_REQUESTS = """
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (text) {
  if (!text.includes("eth_getTransactionByBlockHashAndIndex")) return send.call(this, text);
  window.release = () => send.call(this, text);
};
"""
PLACE = ".places .pending"
OPEN_BARS = "[...document.querySelectorAll('.slot:not(.sealed) .bars > a')].map(each => each.hash)"


@pytest.fixture
def tab(browser: Browser, dev: Dev) -> Iterator[Tab]:
    with opened_tab(browser, dev.main.url) as opened:
        opened.wait(f"{LIVE} === 2", "both networks are live")
        yield opened
        assert opened.problems == []
        assert dev.test is not None
        assert opened.origins == {urlsplit(dev.main.url).netloc, urlsplit(dev.test.url).netloc}


def send(network: Network, **fields: object) -> str:
    sender, *_ = network.ask("eth_accounts")
    found: str = network.ask("eth_sendTransaction", {"from": sender, "gas": "0x186a0", **fields})
    return found


def search(tab: Tab, text: str) -> None:
    tab.press("/")
    tab.type(text)
    tab.press("Enter")
    tab.wait("document.activeElement.id !== 'query'", "the search begins")


def fill(tab: Tab, name: str, text: str) -> None:
    tab.evaluate(f"document.querySelector('#sheet [name={name}]').value = {json.dumps(text)}")


def test_it_moves_with_both_chains(tab: Tab, dev: Dev) -> None:
    assert dev.test is not None
    names = "[...document.querySelectorAll('.network h2')].map(each => each.innerText)"
    assert tab.evaluate(names) == ["main", "test"]
    for network, name in ((dev.main, "main"), (dev.test, "test")):
        column = f".network[data-network={name}]"
        seen = tab.wait(f"document.querySelector('{column} {PLACE}').textContent", "a flashblock")
        tab.wait(f"document.querySelector('{column} {PLACE}').textContent !== '{seen}'", "another")
        sealed = network.latest() + 1
        row = f"{column} .blocks .row[href='#/{name}/block/{sealed}']"
        tab.wait(f'document.querySelector("{row}") !== null', "the next block is in the list")
        block = network.ask("eth_getBlockByNumber", hex(sealed), False)
        # The page learns of a lost flashblock from the next one's index.
        tab.wait_for_text(row, f"{len(block['transactions'])} tx")


def test_the_pending_block_grows_flashblock_by_flashblock(tab: Tab) -> None:
    bars = "document.querySelectorAll('.network .slot:not(.sealed) .bars > a').length"
    seen: set[int] = set()

    def grows() -> bool:
        seen.add(tab.evaluate(bars))
        return len(seen) >= 4

    until(grows, "four sizes of a growing block")
    # Bars of blocks that grew in view stay when they are sealed.
    tab.wait(
        "document.querySelector('.slot.sealed .bars > a:nth-child(6)') !== null", "a sealed one"
    )


def test_a_page_that_is_opened_late_shows_what_was_before(browser: Browser) -> None:
    """Flashblocks and transactions of sealed blocks, and the rates of the last minute."""
    with dev_chain("--test-listen=", "--mining=manual", "--workers=1") as dev:
        dev.main.ask("foreblock_setFlashblockInterval", 0)
        for value in (1, 2):
            last = send(dev.main, to="0x" + "ab" * 20, value=hex(value))
            dev.main.ask("foreblock_closeFlashblock")
        dev.main.ask("evm_mine")
        dev.main.ask("anvil_mine", 2, 60)  # the chain is a minute old; its genesis block is older
        with opened_tab(browser, dev.main.url) as tab:
            for place in ("#/main/block/1.1", "#/main/block/1.2"):
                bar = f".slot.sealed a[href='{place}']"
                tab.wait(f'document.querySelector("{bar}") !== null', "its bars")
            row = f".transactions .row[href='#/main/tx/{last}']"
            tab.wait(f'document.querySelector("{row}") !== null', "its last transaction")
            line = "document.querySelector('.chart.rate .line').getAttribute('d')"
            assert tab.evaluate(line).count("L") > 50
            heights = "[...document.querySelectorAll('.bars i')].map((each) => each.clientHeight)"
            box = "document.querySelector('.bars').clientHeight"
            assert tab.evaluate(f"Math.max(...{heights}) / {box}") > 0.9
            assert tab.problems == []


def test_a_list_that_is_loaded_does_not_say_that_there_is_nothing(browser: Browser) -> None:
    with dev_chain("--test-listen=", "--mining=automine", "--workers=1") as dev:
        hash_ = send(dev.main, to="0x" + "ab" * 20, value="0x1")
        tab = Tab(browser)
        tab.do("Page.addScriptToEvaluateOnNewDocument", source=HELD_REQUESTS)
        tab.open(dev.main.url)
        tab.wait("window.release !== undefined", "the page has its blocks")
        assert tab.text(".transactions .empty") == "Loading…"
        tab.evaluate("release()")
        tab.wait(f"document.querySelector('.row[href$=\"{hash_}\"]') !== null", "its transaction")
        assert tab.evaluate("document.querySelector('.transactions .empty').hidden")
        assert tab.problems == []
        browser.command("Target.closeTarget", {"targetId": tab.target})


@pytest.mark.heavy
def test_transactions_of_blocks_without_flashblocks_are_listed(browser: Browser) -> None:
    with dev_chain("--test-listen=", "--mining=automine", "--workers=1") as dev:
        before = [send(dev.main, to="0x" + "ab" * 20, value=hex(value)) for value in (1, 2)]
        with opened_tab(browser, dev.main.url) as tab:
            row = "document.querySelector('.transactions .row[href$=\"{}\"]') !== null"
            for hash_ in before:
                tab.wait(row.format(hash_), "an earlier one")
            after = send(dev.main, to="0x" + "ab" * 20, value="0x3")
            tab.wait(row.format(after), "a later one")
            assert tab.problems == []


def test_charts_have_a_point_for_each_second(tab: Tab) -> None:
    line = "document.querySelector('.chart.{} .line').getAttribute('d')"
    for kind in ("latency", "rate", "gas", "fee"):
        tab.wait(f"({line.format(kind)} ?? '').split('L').length >= 3", f"three points of {kind}")
    assert "gwei" in tab.text(".chart.fee")
    # The service's own measurements, not the page's.
    tab.wait_for_text(".chart.readable", "p99")
    assert tab.evaluate("document.querySelectorAll('.chart.readable rect').length") > 5
    tab.wait("Number.parseFloat(document.querySelector('.chart.rate b').textContent) > 0", "a rate")


def test_a_transaction_is_found_by_its_hash_and_followed_to_its_seal(tab: Tab, dev: Dev) -> None:
    assert dev.test is not None
    chain = dev.test

    def is_followed() -> bool:
        hash_ = send(chain, to="0x" + "ab" * 20, value=hex(1_500_000_000_000_000_000))
        search(tab, hash_)
        text = tab.wait_for_text("#sheet", "1.5 ETH")
        assert "test" in text
        assert tab.evaluate("location.hash") == f"#/test/tx/{hash_}"
        tab.wait_for_text("#sheet header", "sealed")
        assert "Safe" in tab.text("#sheet .life")
        return "before its block was sealed" in tab.text("#sheet .early")

    # One in the last flashblock of a block may be shown together with its seal.
    until(is_followed, "a transaction that was shown before its seal")


def test_a_transaction_that_is_not_there_yet_appears_when_it_comes(tab: Tab, dev: Dev) -> None:
    (sender, *_) = dev.main.ask("eth_accounts")
    nonce = dev.main.ask("eth_getTransactionCount", sender, "pending")
    signed = dev.main.ask(
        "eth_signTransaction",
        {"from": sender, "to": sender, "gas": "0x5208", "nonce": nonce, "value": "0x1",
         "maxFeePerGas": hex(10**10), "maxPriorityFeePerGas": "0x1", "chainId": hex(31337)},
    )  # fmt: skip
    search(tab, dev.main.ask("web3_sha3", signed))
    tab.wait_for_text("#sheet", "Checked again with every flashblock")
    dev.main.ask("eth_sendRawTransaction", signed)
    tab.wait_for_text("#sheet .early", "in flashblock")


def test_a_revert_shows_its_reason(tab: Tab, dev: Dev) -> None:
    search(tab, send(dev.main, to=ORACLE, data=OVERHEAD))
    assert tab.wait_for_text("#sheet .reason", WHY).startswith("Reverted:")
    assert "failed" in tab.text("#sheet header")


def test_an_account_has_balances_at_latest_and_pending(tab: Tab, dev: Dev) -> None:
    address = "0x" + "cd" * 20
    dev.main.ask("eth_getBalance", address, "latest")
    send(dev.main, to=address, value=hex(2 * 10**18))
    search(tab, address)
    tab.wait_for_text("#sheet .sides", "2 ETH")
    until(lambda: tab.text("#sheet .sides").count("2 ETH") == 2, "it is sealed")
    assert "Account" in tab.text("#sheet h2")
    search(tab, TOKEN)
    tab.wait_for_text("#sheet h2", "Contract")
    size = len(dev.main.ask("eth_getCode", TOKEN, "latest")) // 2 - 1
    assert f"{size:,} bytes" in tab.text("#sheet")


def test_blocks_and_flashblocks_are_shown_by_number_and_hash(tab: Tab, dev: Dev) -> None:
    until(lambda: dev.main.latest() > 0, "a block is sealed: the first of all has no flashblocks")
    block = dev.main.ask("eth_getBlockByNumber", "latest", False)
    number = int(block["number"], 16)
    for query in (str(number), block["hash"]):
        search(tab, query)
        tab.wait(f"location.hash.endsWith({json.dumps(query)})", "it is found")
        text = tab.wait_for_text("#sheet", block["hash"][:20])
        assert f"{len(block['transactions'])} transaction" in text.lower()
    # The first one: the number of further flashblocks depends on the machine's load.
    partial = dev.main.ask(
        "eth_getBlockByNumber", {"blockNumber": hex(number), "flashblockIndex": "0x0"}, False
    )
    search(tab, f"{number}.0")
    tab.wait_for_text("#sheet", partial["hash"][:20])
    assert "after flashblock 0" in tab.text("#sheet header")
    search(tab, "pending")
    tab.wait_for_text("#sheet header", "in progress")


def test_calls_and_simulations_are_decoded(tab: Tab, dev: Dev) -> None:
    owner, other = dev.main.ask("eth_accounts")[8:10]
    tab.press("c")
    tab.wait("document.querySelector('#sheet [name=to]') !== null", "the form")
    fill(tab, "to", TOKEN)
    fill(tab, "signature", "name() returns (string)")
    tab.click("#sheet [name=call]")
    tab.wait_for_text("#sheet .results", '"')
    fill(tab, "signature", "transfer(address to, uint256 amount) returns (bool done)")
    fill(tab, "arguments", f"{other}, 25e17")
    fill(tab, "from", owner)
    tab.click("#sheet [name=simulate]")
    text = tab.wait_for_text("#sheet .results", "Transfer")
    assert "true" in text
    assert other.lower() in text.lower()
    assert "2500000000000000000" in text
    fill(tab, "to", ORACLE)
    fill(tab, "signature", "overhead() returns (uint256)")
    fill(tab, "arguments", "")
    for button in ("call", "simulate"):
        tab.click(f"#sheet [name={button}]")
        tab.wait_for_text("#sheet .results .reason", WHY)
    fill(tab, "arguments", "1")
    tab.click("#sheet [name=call]")
    tab.wait_for_text("#sheet .results", "0 arguments are needed, 1 are given")


def test_texts_of_the_chain_are_texts(tab: Tab, dev: Dev) -> None:
    """A contract that returns markup, for example as a token's name."""
    markup = "<img src=http://127.0.0.1:1/x onerror=alert(1)>"
    returned = bytes.fromhex(f"{32:064x}{len(markup):064x}") + markup.encode().ljust(64, b"\0")
    code = bytes.fromhex(f"60{len(returned):02x}600c60003960{len(returned):02x}6000f3") + returned
    address = "0x" + "ef" * 20
    dev.main.ask("anvil_setCode", address, "0x" + code.hex())
    until(lambda: dev.main.ask("eth_getCode", address, "pending") != "0x", "the contract is there")
    tab.evaluate(f"location.hash = '#/main/call/{address}'")
    tab.wait(f"document.querySelector('#sheet [name=to]')?.value === '{address}'", "the form")
    fill(tab, "signature", "name() returns (string)")
    tab.click("#sheet [name=call]")
    tab.wait_for_text("#sheet .results", markup)
    assert tab.evaluate("document.querySelectorAll('img').length") == 0


def press_button(tab: Tab, label: str) -> None:
    buttons = "[...document.querySelectorAll('#sheet button')]"
    label = json.dumps(label)
    tab.wait(f"{buttons}.some(each => each.innerText.startsWith({label}))", f"the button {label}")
    tab.evaluate(f"{buttons}.find(each => each.innerText.startsWith({label})).click()")


def test_the_console_of_a_dev_chain_sends_and_changes_it(browser: Browser) -> None:
    options = ("--test-listen=", "--mining=manual", "--workers=1")
    with dev_chain(*options) as dev, opened_tab(browser, dev.main.url) as tab:
        tab.wait(f"{LIVE} === 1", "the network is live")
        receiver = "0x" + "ce" * 20
        tab.press("d")
        press_button(tab, "Take a snapshot")
        tab.wait_for_text("#sheet .told", "snapshot 0 taken at block 0")
        fill(tab, "to", receiver)
        fill(tab, "value", "1.5")
        press_button(tab, "Send")
        tab.wait_for_text("#sheet .told", "Accepted")
        sent = tab.evaluate("document.querySelector('#sheet .told a').hash")
        press_button(tab, "Mine")
        tab.wait_for_text("#sheet .told", "1 block mined")
        assert dev.main.ask("eth_getBalance", receiver, "latest") == hex(15 * 10**17)
        press_button(tab, "Revert to 0")
        tab.wait_for_text("#sheet .told", "back to snapshot 0")
        tab.wait_for_text(".events", "the latest is 0")
        assert dev.main.latest() == 0
        tab.evaluate(f"location.hash = {json.dumps(sent)}")
        assert "from this page" in tab.wait_for_text("#sheet .life", "Sent")
        tab.press("d")
        tab.wait("document.querySelector('#sheet [name=depth]') !== null", "the faults")
        fill(tab, "depth", "two")
        press_button(tab, "Reorg")
        tab.wait_for_text("#sheet .told", "not a whole number: two")
        assert tab.problems == []


@pytest.mark.heavy
def test_a_service_without_dev_methods_has_no_console(browser: Browser) -> None:
    options = ("--test-listen=", "--workers=1", "--dev-methods=off")
    with dev_chain(*options) as dev, opened_tab(browser, dev.main.url) as tab:
        tab.wait(f"{LIVE} === 1", "the network is live")
        tab.wait_for_text(".blocks", "tx")
        assert tab.evaluate("document.querySelector('#to-dev').hidden")
        tab.evaluate("location.hash = '#/main/dev'")
        tab.wait("document.querySelector('#sheet').hidden", "there is no such view")
        assert tab.problems == []


def test_a_transaction_shows_its_calls_and_state_changes(tab: Tab, dev: Dev) -> None:
    sender, receiver = dev.main.ask("eth_accounts")[:2]
    amount = f"{10**30:064x}"
    data = "0xa9059cbb" + receiver[2:].rjust(64, "0") + amount
    entry = {"address": TOKEN, "storageKeys": [f"0x{1:064x}", f"0x{2:064x}"]}
    search(tab, send(dev.main, to=TOKEN, data=data, accessList=[entry]))
    assert "Access list: 1 account, 2 keys" in tab.wait_for_text("#sheet", "Access list")
    argument = "#sheet section a[href='#/main/address/" + receiver + "']"
    assert tab.text(argument).lower() == receiver  # of the call
    reason = tab.wait_for_text("#sheet .reason", "ERC20InsufficientBalance(sender: ")
    assert sender in reason.lower()
    assert f"needed: {10**30}" in reason
    tab.wait("document.querySelectorAll('#sheet details.trace').length === 2", "two parts")
    tab.evaluate("document.querySelectorAll('#sheet .trace').forEach((e) => { e.open = true; })")
    assert "transfer(" in tab.wait_for_text("#sheet .tree", "Test token")
    assert "account 0" in tab.wait_for_text("#sheet .trace:last-of-type", "Nonce")
    # Addresses have the checksum of EIP-55.
    assert "0x7E57000000000000000000000000000000000020" in tab.text("#sheet")


def test_a_token_has_its_name_its_transactions_and_a_pasted_abi(tab: Tab, dev: Dev) -> None:
    owner = dev.main.ask("eth_accounts")[0]
    selector = keccak256(b"answer(uint256)")[:4].hex()
    hash_ = send(dev.main, to=TOKEN, data=f"0x{selector}{42:064x}")
    tab.evaluate(f"location.hash = '#/main/address/{owner}'")
    tab.wait_for_text("#sheet", "TEST")
    tab.evaluate(f"location.hash = '#/main/address/{TOKEN}'")
    assert "18 decimals" in tab.wait_for_text("#sheet", "Foreblock Test Token (TEST)")
    tab.wait_for_text("#sheet section .row", "Test token")
    abi = [{"type": "function", "name": "answer", "inputs": [{"name": "life", "type": "uint256"}]}]
    tab.evaluate("document.querySelector('#sheet form.abi').parentElement.open = true")
    fill(tab, "abi", json.dumps(abi))
    press_button(tab, "Keep")
    tab.wait_for_text("#sheet form.abi", "1 signature kept")
    search(tab, hash_)
    tab.wait_for_text("#sheet", "life")
    tab.evaluate("localStorage.clear()")


def test_keys_move_open_and_close(tab: Tab) -> None:
    all_have_rows = (
        "[...document.querySelectorAll('.network')].every((e) => e.querySelector('a.row'))"
    )
    tab.wait(all_have_rows, "rows in every column")
    row = "[...document.querySelectorAll('.network a.row')].indexOf(document.activeElement)"
    tab.press("j")
    assert tab.evaluate(f"{row} >= 0")
    tab.press("j")
    tab.press("Enter")
    tab.wait("!document.querySelector('#sheet').hidden", "the sheet opens")
    tab.press("Escape")
    tab.wait("document.querySelector('#sheet').hidden", "the sheet closes")
    tab.press("l")
    assert tab.evaluate("document.activeElement.closest('.network')?.dataset.network") == "test"
    tab.press("?")
    tab.wait("document.querySelector('#help').open", "the help")
    tab.press("?")
    tab.wait("!document.querySelector('#help').open", "no help")
    tab.press("/")
    tab.type("nonsense")
    tab.press("Enter")
    tab.wait_for_text("#unfound", "is needed")
    tab.press("Escape")
    assert tab.evaluate("document.activeElement.id") != "query"
    assert tab.evaluate("document.querySelector('#unfound').hidden")
    assert tab.evaluate("document.querySelector('#query').value") == ""
    search_error = "!document.querySelector('#unfound').hidden"
    tab.press("/")
    tab.type("nonsense")
    tab.press("Enter")
    tab.wait(search_error, "an error")
    tab.evaluate("location.hash = '#/main/block/0'")
    tab.wait(f"!({search_error})", "it is gone on another route")


def test_light_and_dark_follow_the_system_until_somebody_chooses(tab: Tab) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    tab.set_viewport(dark=False)
    light = tab.evaluate(ground)
    tab.set_viewport(dark=True)
    dark = tab.wait(f"{ground} !== '{light}' && {ground}", "it is dark")
    tab.press("t")
    assert tab.evaluate(ground) == light
    tab.evaluate("window.before = true; location.reload()")
    loaded = f"!window.before && document.readyState === 'complete' && {LIVE} === 2"
    tab.wait(loaded, "it is loaded again")
    assert tab.evaluate(ground) == light
    tab.press("t")
    assert tab.evaluate(ground) == dark
    tab.evaluate("localStorage.clear()")


@pytest.mark.parametrize("width", sampled([360, 390, 820], 1))
def test_nothing_is_wider_than_a_phone(tab: Tab, dev: Dev, width: int) -> None:
    tab.set_viewport(width=width, height=800)
    hash_ = send(dev.main, to=TOKEN, data="0xa9059cbb" + "00" * 64)
    routes = ("", "main/block/pending", f"main/tx/{hash_}", f"main/address/{TOKEN}", "main/call/")
    for route in routes:
        tab.evaluate(f"location.hash = '#/{route}'")
        hidden = "true" if not route else "false"
        tab.wait(f"document.querySelector('#sheet').hidden === {hidden}", f"the route {route}")
        if route:
            tab.wait("document.querySelector('#sheet h2') !== null", "the sheet is drawn")
        for part in ("document.documentElement", "document.querySelector('#sheet')"):
            assert tab.evaluate(f"{part}.scrollWidth <= window.innerWidth"), (route, part)


def test_without_websocket_it_polls(browser: Browser, dev: Dev) -> None:
    tab = Tab(browser)
    tab.do("Page.addScriptToEvaluateOnNewDocument", source=NO_WEBSOCKET)
    tab.open(dev.main.url)
    column = "document.querySelector('.network[data-network=main]')"
    tab.wait(f"{column}?.dataset.state === 'polling'", "it polls")
    seen = tab.wait(f"document.querySelector('{PLACE}').textContent", "a flashblock")
    tab.wait(f"document.querySelector('{PLACE}').textContent !== '{seen}'", "another")
    assert tab.problems == []
    browser.command("Target.closeTarget", {"targetId": tab.target})


def test_a_page_that_nobody_sees_disconnects_until_somebody_does(
    browser: Browser, dev: Dev
) -> None:
    tab = Tab(browser)
    tab.do("Page.addScriptToEvaluateOnNewDocument", source=SHORT_MINUTES)
    tab.open(dev.main.url)
    tab.wait(f"{LIVE} === 2", "both networks are live")
    tab.evaluate("hide(true)")
    tab.wait("document.querySelectorAll('[data-state=paused]').length === 2", "both are paused")
    tab.evaluate("hide(false)")
    tab.wait(f"{LIVE} === 2", "both are live again")
    assert tab.problems == []
    browser.command("Target.closeTarget", {"targetId": tab.target})


@pytest.mark.heavy
def test_blocks_that_are_replaced_leave_the_page(browser: Browser) -> None:
    with dev_chain("--test-listen=") as dev, opened_tab(browser, dev.main.url) as tab:
        until(lambda: dev.main.latest() > 3, "some blocks")
        tab.wait("document.querySelectorAll('.blocks .row').length > 3", "the page has them")
        gone = dev.main.ask("eth_getBlockByNumber", "latest", False)
        dev.main.ask("anvil_reorg", 2, [])
        tab.wait(f"document.querySelector('.row[data-key=\"{gone['hash']}\"]') === null", "it left")
        rows = "[...document.querySelectorAll('.blocks .row .number')].map(each => +each.innerText)"
        numbers = tab.wait(
            f"{rows}[0] > {int(gone['number'], 16)} && {rows}", "the chain continues"
        )
        assert numbers == sorted(set(numbers), reverse=True)
        assert "2 blocks replaced" in tab.text(".events")
        assert "reorg" in tab.text(".blocks")
        assert tab.problems == []


@pytest.mark.heavy
def test_flashblocks_that_are_taken_back_are_counted_again(browser: Browser) -> None:
    """Blocks are sealed by hand, so that this one stays open."""

    def add(value: int) -> str:
        send(dev.main, to="0x" + "ab" * 20, value=hex(value))
        told = dev.main.ask("foreblock_closeFlashblock")
        return f"{int(told['blockNumber'], 16)}.{int(told['index'], 16)}"

    options = ("--test-listen=", "--mining=manual")
    with dev_chain(*options) as dev, opened_tab(browser, dev.main.url) as tab:
        tab.wait(f"{LIVE} === 1", "the network is live")
        dev.main.ask("foreblock_setFlashblockInterval", 0)
        first = add(1)
        tab.wait_for_text(PLACE, first)
        snapshot = dev.main.ask("evm_snapshot")
        taken_back = [add(value) for value in (2, 3)]
        tab.wait_for_text(PLACE, taken_back[-1])
        assert dev.main.ask("evm_revert", snapshot)
        # They are replaced by another one with as many transactions.
        assert add(4) == taken_back[0]
        tab.wait_for_text(PLACE, taken_back[0])
        tab.wait(f"{OPEN_BARS}.at(-1).endsWith('{taken_back[0]}')", "the others left the time line")
        assert tab.problems == []


@pytest.mark.heavy
def test_a_dropped_transaction_says_so_and_comes_again(browser: Browser) -> None:
    options = ("--test-listen=", "--mining=manual", "--workers=1")
    with dev_chain(*options) as dev, opened_tab(browser, dev.main.url) as tab:
        tab.wait(f"{LIVE} === 1", "the network is live")
        dev.main.ask("foreblock_setFlashblockInterval", 0)
        for value in (1, 2):
            hash_ = send(dev.main, to="0x" + "ab" * 20, value=hex(value))
            tab.evaluate(f"location.hash = '#/main/tx/{hash_}'")
            tab.wait_for_text("#sheet .waiting", "Accepted, waiting for a flashblock")
            dev.main.ask("foreblock_closeFlashblock")
            tab.wait_for_text("#sheet .early", "in flashblock")
        dev.main.ask("foreblock_dropTail")
        assert "was in flashblock 1.2" in tab.wait_for_text("#sheet .reason", "Dropped")
        assert "block 1 lost 1 flashblock" in tab.text(".events")
        assert tab.evaluate("document.querySelector('.bars .dropped') !== null")
        dev.main.ask("foreblock_closeFlashblock")
        tab.wait_for_text("#sheet .reason", "included again")
        assert tab.problems == []


@pytest.mark.heavy
def test_flashblocks_that_came_before_the_page_listens_are_asked_for(browser: Browser) -> None:
    options = ("--test-listen=", "--mining=manual")
    with dev_chain(*options) as dev:
        dev.main.ask("foreblock_setFlashblockInterval", 0)
        places = [int(dev.main.ask("foreblock_closeFlashblock")["index"], 16)]
        tab = Tab(browser)
        tab.do("Page.addScriptToEvaluateOnNewDocument", source=LATE_SUBSCRIPTION)
        tab.open(dev.main.url)
        tab.wait("window.subscribe !== undefined", "it is about to listen")
        for value in (1, 2, 3):
            send(dev.main, to="0x" + "ab" * 20, value=hex(value))
            places.append(int(dev.main.ask("foreblock_closeFlashblock")["index"], 16))
            if value == 2:
                tab.evaluate("subscribe()")
                tab.wait("window.listens", "it listens")
        expected = list(range(places[-1] + 1))
        tab.wait(f"{OPEN_BARS}.length === {len(expected)}", "all of them are there")
        hrefs = tab.evaluate(OPEN_BARS)
        assert [int(each.rpartition(".")[2]) for each in hrefs] == expected
        assert tab.problems == []
        browser.command("Target.closeTarget", {"targetId": tab.target})


@pytest.mark.heavy
def test_large_blocks_cost_no_questions(browser: Browser) -> None:
    options = ("--load=400", "--test-listen=", "--workers=1")
    with dev_chain(*options) as dev, opened_tab(browser, dev.main.url) as tab:
        tab.wait("document.querySelectorAll('.slot.sealed:not(.whole)').length > 2", "sealed ones")
        bars = (
            "[...document.querySelectorAll('.slot.sealed:not(.whole)')]"
            ".map(slot => [...slot.querySelectorAll('.bars > a')])"
            ".findLast(all => all.length > 5)"
        )
        hrefs = tab.wait(f"{bars}?.map(each => each.getAttribute('href'))", "one with many indices")
        assert [int(each.rpartition(".")[2]) for each in hrefs] == list(range(len(hrefs)))
        assert len(hrefs) > 5
        tab.wait_for_text(".transactions .way", "→")
        # Blocks are requested when the page is opened, transactions are not.
        assert sum("eth_getBlockByNumber" in each for each in tab.sent) == 1
        assert not tab.has_sent("eth_getTransactionByHash")
        assert tab.problems == []


@pytest.mark.heavy
def test_it_goes_on_after_a_restart_of_the_service(browser: Browser, tmp_path: Path) -> None:
    options = (
        f"--data={tmp_path}", f"--listen=127.0.0.1:{free_port()}", "--test-listen=", "--workers=1",
    )  # fmt: skip
    state = "document.querySelector('.network')?.dataset.state"
    with dev_chain(*options) as dev, opened_tab(browser, dev.main.url + "/ui") as tab:
        tab.wait(f"{state} === 'live'", "it is live")
        before = dev.main.latest()
        dev.process.send_signal(signal.SIGTERM)
        dev.process.wait(PATIENCE)
        tab.wait(f"{state} === 'lost'", "it has noticed")
        with dev_chain(*options) as again:
            tab.wait(f"{state} === 'live'", "it is live again")
            until(lambda: again.main.latest() > before, "the chain continues")
            seen = tab.wait(f"document.querySelector('{PLACE}').textContent", "a flashblock")
            tab.wait(f"document.querySelector('{PLACE}').textContent !== '{seen}'", "another")
            # The browser itself reports failed connections, and nothing else.
            assert [each for each in tab.problems if not each.startswith("network:")] == []
            search(tab, str(before))
            tab.wait_for_text("#sheet h2", f"{before:,}")
