"""`foreblock dev --one-process`: the chain is written by the process that serves it."""

import os
import signal
from pathlib import Path

import pytest

from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from support.servers.dev_processes import Network, RpcError, dev_chain, refused
from support.servers.waiting import PATIENCE, until

ALICE = "0x" + dev_accounts(TEST_MNEMONIC, 1)[0].address.hex()
BOB = "0x" + "b0" * 20
OPTIONS = (
    "--one-process",
    "--workers=1",
    "--mining=automine",
    "--rules=ethereum",
    "--test-listen=",
)


def pay(network: Network) -> int:
    """Pay Bob a wei; gives the number of the block that has it, which is sealed by then."""
    sent = network.ask("eth_sendTransaction", {"from": ALICE, "to": BOB, "value": "0x1"})
    receipt = network.ask("eth_getTransactionReceipt", sent)
    assert receipt is not None, "it is there when the hash is"
    return int(receipt["blockNumber"], 16)


def balance(network: Network) -> int:
    return int(network.ask("eth_getBalance", BOB, "latest"), 16)


def test_what_was_answered_is_there_for_the_next_request_and_after_a_kill(tmp_path: Path) -> None:
    with dev_chain(*OPTIONS, f"--data={tmp_path}") as dev:
        main = dev.main.node
        assert (dev.pids("writer"), dev.pids("worker")) == ([], [])
        assert [pay(main), pay(main), balance(main)] == [1, 2, 2]
        snapshot = main.ask("evm_snapshot")
        main.ask("anvil_setBalance", BOB, "0x64")
        main.ask("anvil_mine", "0x14")
        assert (balance(main), main.latest()) == (100, 22)
        (killed,) = dev.pids("one_process")
        os.kill(killed, signal.SIGKILL)
        until(lambda: dev.pids("one_process") not in ([], [killed]), "another one")
        assert (balance(main), main.latest(), pay(main)) == (100, 22, 23)
        assert main.ask("evm_revert", snapshot) is True
        assert (balance(main), main.latest()) == (2, 2)
        assert main.ask("evm_revert", snapshot) is False
        assert pay(main) == 3
        dev.process.send_signal(signal.SIGINT)
        assert dev.process.wait(PATIENCE) == 0
    with dev_chain(*OPTIONS, f"--data={tmp_path}") as dev:
        assert (balance(dev.main.node), dev.main.latest()) == (3, 3)


def test_commands_of_a_batch_are_carried_out_in_order() -> None:
    with dev_chain(*OPTIONS) as dev:
        main = dev.main.node
        slots = [("anvil_setStorageAt", (BOB, hex(n % 7), f"0x{n:064x}")) for n in range(200)]
        main.batch(*slots, ("evm_mine", ()), ("anvil_setNonce", (BOB, "0x5")), ("evm_mine", ()))
        assert main.latest() == 2
        assert int(main.ask("eth_getStorageAt", BOB, "0x3", "latest"), 16) == 199
        assert main.ask("eth_getTransactionCount", BOB, "0x1") == "0x0"
        assert main.ask("eth_getTransactionCount", BOB, "0x2") == "0x5"
        with pytest.raises(RpcError, match="New nonce"):
            main.ask("anvil_setNonce", BOB, "0x1")
        main.batch(
            ("anvil_setBalance", (BOB, "0x3")),
            ("anvil_setNonce", (BOB, "0x6")),  # which is not put off, as what follows may be
            ("anvil_addBalance", (BOB, "0x4")),
            ("evm_snapshot", ()),
            ("anvil_setBalance", (BOB, "0x9")),
            ("evm_revert", ("0x0",)),
        )
        assert balance(main) == 7
        assert main.ask("eth_getTransactionCount", BOB, "latest") == "0x6"


def test_what_is_put_off_is_seen_by_every_read_and_survives_a_kill() -> None:
    with dev_chain(*OPTIONS) as dev:
        main = dev.main.node
        for number in range(1, 20):  # of which the fast path answers what is not put off
            main.ask("anvil_setBalance", BOB, hex(number))
            assert balance(main) == number
            assert balance(main) == number
        ids = []
        for number in range(3):
            ids.append(main.ask("evm_snapshot"))
            main.ask("anvil_addBalance", BOB, hex(number + 1))
        assert ids == ["0x0", "0x1", "0x2"]
        (killed,) = dev.pids("one_process")
        os.kill(killed, signal.SIGKILL)  # within a hundredth of a second, often enough
        until(lambda: dev.pids("one_process") not in ([], [killed]), "another one")
        assert balance(main) == 25
        assert [main.ask("evm_revert", each) for each in ("0x2", "0x2", "0x1")] == [
            True,
            False,
            True,
        ]
        assert balance(main) == 20
        assert pay(main) == 1
        assert main.ask("evm_revert", "0x0") is True
        assert (balance(main), main.latest()) == (19, 0)
        assert pay(main) == 1, "nothing remembers the nonce that was taken back"


def test_one_process_has_one_network() -> None:
    assert "one_process" in refused("--one-process")
