"""Random steps of a real chain and of its mirror, against facts that hold whatever happens."""

import itertools
import random
from pathlib import Path
from typing import Any

from foreblock.dev_chain.reading import ChainState
from foreblock.errors import ForeblockError, TransactionDropped
from support.each_case import each_case
from support.mirrored import Mirror, mirrored

MNEMONIC = "legal winner thank year wave sausage worth useful legal winner thank yellow"
FUNDED = 10**20


def account(kind: int, at: int) -> bytes:
    return bytes([kind, at]) * 10


# Only real transactions name these, only local ones name those; the slots of the last are edited.
REAL, LOCAL, BOTH, EDITED = (
    [account(kind, at) for at in range(4)] for kind in (0xA0, 0xB0, 0xC0, 0xD0)
)


def number_of(chain: ChainState) -> int:
    number = chain.block().number
    assert number is not None
    return number


class Walk:
    """A mirror, what was done to it, and what has to be true of it."""

    def __init__(self, mirror: Mirror, seed: int, *, has_feed: bool) -> None:
        """Without a feed the real chain is known block by block; nobody can verify its edits."""
        self.mirror, self.random, self.has_feed = mirror, random.Random(seed), has_feed
        self.sent: dict[str, tuple[bytes, bytes, int]] = {}  # local transactions, by hash
        self.slots: dict[tuple[bytes, int], int] = {}  # that were edited
        for address in LOCAL:
            mirror.set_balance(address, FUNDED)
            mirror.rpc("anvil_impersonateAccount", f"0x{address.hex()}")
        mirror.chain.seal()
        mirror.wait()
        if not has_feed:
            mirror.follower.disconnect()

    # --- Steps -------------------------------------------------------------------------

    def send_real(self) -> None:
        to = self.random.choice(REAL + BOTH)
        self.mirror.chain.send(to, value=self.random.randrange(1, 9))

    def edit_real(self) -> None:
        address = self.random.choice(EDITED)
        slot = self.random.randrange(4)
        self.mirror.chain.set_storage(address, slot, self.random.randrange(1, 99))

    def close_real(self) -> None:
        self.mirror.chain.flashblock()

    def seal_real(self) -> None:
        self.mirror.chain.seal(self.random.choice([1, 1, 1, 3]))

    def restart_real(self) -> None:
        self.mirror.chain.restart_block()

    def drop_real(self) -> None:
        try:
            self.mirror.chain.drop_tail()
        except ForeblockError:
            return  # there is none

    def replace_real(self) -> None:
        if number_of(self.mirror.chain) > 6:
            self.mirror.chain.reorg(self.random.randrange(1, 3))

    def send_local(self) -> None:
        sender = self.random.choice(LOCAL)
        to, value = self.random.choice(LOCAL + BOTH), self.random.randrange(1, 9)
        wanted = {"from": f"0x{sender.hex()}", "to": f"0x{to.hex()}", "value": hex(value)}
        self.sent[self.mirror.rpc("eth_sendTransaction", wanted)] = sender, to, value

    def edit_local(self) -> None:
        address, slot = self.random.choice(EDITED), self.random.randrange(4)
        value = self.random.randrange(1, 99)
        self.mirror.set_storage(address, slot, value)
        self.slots[address, slot] = value

    def follow(self) -> None:
        self.mirror.wait()

    def step(self) -> None:
        often = [self.send_real, self.send_local, self.follow, self.close_real]
        steps = [*often, *often, self.seal_real, self.edit_local]
        steps += [self.edit_real] if self.has_feed else [self.seal_real]
        rare = [self.restart_real, self.drop_real, self.replace_real]
        self.random.choice(rare if self.random.random() < 0.08 else steps)()

    # --- Facts -------------------------------------------------------------------------

    def check(self) -> None:
        """Compare the mirror with the real chain and with what was sent."""
        self.mirror.wait()
        included = self.check_transactions()
        self.check_state("pending", included)
        latest = number_of(self.mirror)
        included = [each for each in included if int(each["blockNumber"], 16) <= latest]
        self.check_state("latest", included)

    def check_transactions(self) -> list[dict[str, Any]]:
        """Every local transaction is in a block, waits, or was dropped; returns the receipts."""
        mirror, found = self.mirror, []
        waiting = {f"0x{each.hex()}" for each in mirror._network.waiting()}
        for sent in self.sent:
            try:
                receipt = mirror.rpc("eth_getTransactionReceipt", sent)
            except TransactionDropped:
                continue
            assert receipt is not None or sent in waiting, f"{sent} is lost"
            if receipt is not None:
                found.append(receipt)
        return found

    def check_state(self, tag: str, included: list[dict[str, Any]]) -> None:
        mirror, real = self.mirror.at(tag), self.mirror.real.at(tag)
        number = number_of(mirror)
        if tag == "latest":
            real = self.mirror.real.at(number)
        assert number == number_of(real)
        for address in REAL:
            assert mirror.balance(address) == real.balance(address)
        chain = self.mirror.chain.accounts[0]
        assert mirror.nonce(chain) == real.nonce(chain)
        for address, slot in itertools.product(EDITED, range(4)):
            if (address, slot) not in self.slots:
                assert mirror.storage(address, slot) == real.storage(address, slot)
            elif tag == "pending":
                assert mirror.storage(address, slot) == self.slots[address, slot]
        moved = dict.fromkeys(LOCAL, FUNDED)
        for receipt in included:
            sender, to, value = self.sent[receipt["transactionHash"]]
            if int(receipt["status"], 16):
                moved[sender] -= value
                if to in moved:
                    moved[to] += value
        for address, balance in moved.items():
            assert mirror.balance(address) == balance

    def check_blocks(self) -> None:
        """Each sealed block has the real block's transactions, in their order, and local ones."""
        rpc, real = self.mirror.rpc, self.mirror.chain.rpc
        for number in range(2, number_of(self.mirror) + 1):
            found = rpc("eth_getBlockByNumber", hex(number), False)
            expected = real("eth_getBlockByNumber", hex(number), False)
            ours = [each for each in found["transactions"] if each not in self.sent]
            assert ours == expected["transactions"]
            same = ("timestamp", "mixHash", "baseFeePerGas", "gasLimit", "miner", "extraData")
            assert {name: found[name] for name in same} == {name: expected[name] for name in same}
            receipts = rpc("eth_getBlockReceipts", hex(number))
            assert int(found["gasUsed"], 16) == sum(int(each["gasUsed"], 16) for each in receipts)
            by_hash = {each["transactionHash"]: each for each in receipts}
            for each in real("eth_getBlockReceipts", hex(number)):
                mirrored_one = by_hash[each["transactionHash"]]
                for name in ("status", "gasUsed", "effectiveGasPrice", "l1Fee", "contractAddress"):
                    assert mirrored_one.get(name) == each.get(name)


@each_case("seed", range(8))
def test_a_mirror_has_the_real_state_below_local_writes(seed: int, tmp_path: Path) -> None:
    with mirrored(tmp_path / str(seed), mnemonic=MNEMONIC) as mirror:
        walk = Walk(mirror, seed, has_feed=seed % 2 == 0)
        for count in range(1, 121):
            walk.step()
            if count % 12 == 0:
                walk.check()
        walk.check_blocks()
        assert len(walk.sent) > 10
