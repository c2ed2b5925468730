"""State files of `--like anvil`: kept from one chain to the next, and exchanged with anvil."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from support.servers.like_anvil import Running, anvil, like_anvil, running
from support.servers.waiting import until

FIRST = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
SOMEBODY = "0x" + "5e" * 20
RETURNS_SLOT = "0x60015460005260206000f3"  # of slot 1
WORD = "0x" + (77).to_bytes(32).hex()


def fill(chain: Running) -> None:
    """Add a contract with a slot, a balance, and an account with a nonce."""
    chain.ask("anvil_setCode", SOMEBODY, RETURNS_SLOT)
    chain.ask("anvil_setStorageAt", SOMEBODY, "0x1", WORD)
    chain.ask("anvil_setBalance", SOMEBODY, "0x1234")
    call = {"from": FIRST, "to": SOMEBODY, "value": "0x1", "data": "0x"}
    sent = chain.ask("eth_sendTransaction", call)
    wait_for_receipt(chain, sent)  # unmined transactions are not in anvil's file


def wait_for_receipt(chain: Running, sent: object) -> dict[str, Any]:
    """Return the receipt of a transaction; anvil mines after its response."""
    receipt = until(lambda: chain.ask("eth_getTransactionReceipt", sent), "it is mined")
    return cast("dict[str, Any]", receipt)


def check(chain: Running) -> None:
    """Check for all of that."""
    assert chain.ask("eth_getCode", SOMEBODY, "latest") == RETURNS_SLOT
    assert chain.ask("eth_call", {"to": SOMEBODY}, "latest") == WORD
    assert chain.ask("eth_getBalance", SOMEBODY, "latest") == "0x1235"
    assert chain.ask("eth_getTransactionCount", FIRST, "latest") == "0x1"
    # The chain continues from there.
    sent = chain.ask("eth_sendTransaction", {"from": FIRST, "to": SOMEBODY, "value": "0x1"})
    assert wait_for_receipt(chain, sent)["status"] == "0x1"


def test_state_is_written_while_the_chain_runs_and_goes_on_with_the_next_chain(
    tmp_path: Path,
) -> None:
    file = tmp_path / "state.json"
    with running(like_anvil("--state", str(tmp_path), "-s", "1")) as chain:
        fill(chain)
        until(lambda: file.exists() and SOMEBODY in json.loads(file.read_text())["accounts"],
              "the state is written")  # fmt: skip
        file.unlink()
        assert chain.stop() == 0
    with running(like_anvil("--state", str(file))) as chain:
        check(chain)


@pytest.mark.parametrize(
    ("writer", "reader"), [(like_anvil, anvil), (anvil, like_anvil)], ids=["to anvil", "from anvil"]
)
def test_states_are_exchanged_with_anvil(tmp_path: Path, writer: Any, reader: Any) -> None:  # noqa: ANN401
    file = tmp_path / "dump.json"
    writing, reading = writer("--dump-state", str(file)), reader("--load-state", str(file))
    with running(writing) as chain:
        fill(chain)
        assert chain.stop() == 0
    with running(reading) as chain:
        check(chain)


def test_a_state_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    file.write_text('{"accounts": 7}', "utf-8")
    with pytest.raises(AssertionError), running(like_anvil("--load-state", str(file))):
        pass
