"""A dev chain with something of each kind in its store, for tests that check it."""

from pathlib import Path

from foreblock.bus.commands import SetAccount
from support.chains.dev_chain import ACCOUNTS, DevChain, send
from support.payloads.bytecode import code

CONTRACT = b"\xc0" * 20
# Writes its input to slot 1, and logs it as a topic.
WRITES = bytes.fromhex(code(0, "CALLDATALOAD", 1, "SSTORE", 0, "CALLDATALOAD", 0, 0, "LOG1")[2:])


def busy_chain(folder: Path) -> DevChain:
    """Some twenty blocks with transfers, logs and cheats; states of the last ten are kept."""
    chain = DevChain(folder, keep_states=10, keep_partials=4)
    chain.execute(SetAccount(CONTRACT, code=WRITES, balance=(7).to_bytes(32)))
    run_blocks(chain, 20)
    return chain


def run_blocks(chain: DevChain, count: int) -> None:
    """Let blocks pass, each with a transfer and a call that logs."""
    for _ in range(count):
        nonces = [chain.sequencer.next_nonce(each.address) for each in ACCOUNTS[:2]]
        word = (1 + nonces[1] % 3).to_bytes(32)
        call = send(ACCOUNTS[1], nonces[1], CONTRACT, 0, data=word, gas=100_000)
        chain.submit(send(ACCOUNTS[0], nonces[0]), call)
        chain.run(2_000)
    chain.execute(SetAccount(b"\xcc" * 20, balance=(count).to_bytes(32), storage={}))
