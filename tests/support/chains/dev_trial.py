"""All steps that users may take on a dev chain: real requests, faults and kills.

`held_chain` has the checks that run after each step.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foreblock.types import decode_transactions
from support.chains.dev_chain import GWEI, SECOND, send
from support.chains.dev_world import SLOTS, DevWorld, Sent, Set
from support.chains.held_chain import ACTORS, FIRST, LOGGER, PEOPLE, SENDERS, HeldChain, hexed

CODES = (b"", b"\x00", LOGGER)
NO_SIGNER = "No Signer available"
WHO, ACTOR, TO, AMOUNT, DEPTH = range(3), range(2), range(len(PEOPLE)), range(10), range(4)
LATER = (1, 13, 100)  # seconds
# Possible steps and their arguments.
STEPS: dict[str, tuple[Sequence[Any], ...]] = {
    "send_raw": (WHO, (0, 0, 0, 1), TO),  # with this gap before its nonce
    "send": (WHO, TO),
    "send_sync": (WHO, TO),
    "impersonated": (ACTOR, TO),
    "unsigned": (ACTOR, TO),
    "impersonate": (ACTOR, range(2)),
    "stop": (ACTOR, range(2)),
    "impersonate_all": ((False, True),),
    "drop": (("one", "sender", "all"), WHO),
    "balance": (TO, AMOUNT),
    "balances": (AMOUNT,),
    "add": (TO, AMOUNT),
    "nonce": (TO, AMOUNT),
    "code": (TO, AMOUNT),
    "slot": (TO, AMOUNT),
    "load": (TO, AMOUNT),
    "evm_mine": (),
    "interval_mine": (),
    "mine": ((1, 3), (None, 5)),
    "mine_at": (LATER,),
    "automine": ((True, False),),
    "interval_mining": ((0, 2),),
    "flashblock_interval": ((0, 200),),
    "pass": ((50, 250, 1_000, 5_000),),
    "increase_time": (LATER,),
    "next_timestamp": (LATER,),
    "set_time": (LATER,),
    "apart": ((None, 0, 3),),
    "coinbase": (AMOUNT,),
    "randao": (AMOUNT,),
    "gas_limit": (AMOUNT,),
    "min_price": (AMOUNT,),
    "snapshot": (),
    "revert": (DEPTH,),  # target block, counted from the last one
    "reset": (),
    "rollback": (DEPTH,),
    "set_head": (DEPTH,),
    "reorg": (DEPTH,),
    "reorg_back": (DEPTH,),
    "reorg_with": (DEPTH, (True, False), TO),
    "restart": (),
    "tail": (),
    "equivocate": (),
    "kill": (),
}


class Trial(HeldChain):
    """The steps."""

    def do(self, name: str, *arguments: Any) -> None:  # noqa: ANN401, of the step
        number = self.life.chain.sequencer.builder.block.number
        job = self.life.names.job(number)
        getattr(self, f"do_{name}")(*arguments)
        self.life.run_until_idle()
        if name not in {"revert", "reset", "rollback", "set_head", "reorg", "reorg_back"}:
            self.life.names.apply(self.life.chain.published)
            begun_anew = self.life.names.job(number) not in {job, b""}
            if begun_anew and name != "reorg_with":
                self.model.restart_block()
        self.finish()

    # --- Transactions ------------------------------------------------------------------

    def sent(self, sender: bytes, nonce: int, to: int, value: int, hashed: str) -> None:
        found = Sent(sender, nonce, PEOPLE[to], value, bytes.fromhex(hashed[2:]))
        self.known.add(found.hash)
        self.model.send(found)

    def do_send_raw(self, who: int, gap: int, to: int) -> None:
        sender = SENDERS[who]
        nonce = self.model.next_nonce(sender.address) + gap
        if (sender.address, nonce) in self.model.waiting:
            return
        made = send(sender, nonce, PEOPLE[to], gas=60_000, cap=300 * GWEI)
        hashed = self.done("eth_sendRawTransaction", hexed(made.raw))
        self.sent(sender.address, nonce, to, 1, hashed)

    def request(self, sender: bytes, to: int, value: int) -> dict[str, str]:
        """Build a request with enough gas for any code, and fees above every base fee."""
        fees = {"maxFeePerGas": hex(300 * GWEI), "maxPriorityFeePerGas": hex(GWEI)}
        paid = {"value": hex(value), "gas": hex(60_000), **fees}
        return {"from": hexed(sender), "to": hexed(PEOPLE[to]), **paid}

    def do_send(self, who: int, to: int) -> None:
        sender = SENDERS[who].address
        nonce = self.model.next_nonce(sender)
        hashed = self.done("eth_sendTransaction", self.request(sender, to, 1))
        self.sent(sender, nonce, to, 1, hashed)

    def do_send_sync(self, who: int, to: int) -> None:
        if self.model.mining != "automine":
            return  # no block would include it
        sender = SENDERS[who].address
        nonce = self.model.next_nonce(sender)
        receipt = self.done("eth_sendTransactionSync", self.request(sender, to, 1))
        assert receipt["status"] == "0x1"
        self.sent(sender, nonce, to, 1, receipt["transactionHash"])

    def do_impersonated(self, who: int, to: int) -> None:
        self.send_unsigned("eth_sendTransaction", ACTORS[who], to)

    def do_unsigned(self, who: int, to: int) -> None:
        self.send_unsigned("eth_sendUnsignedTransaction", ACTORS[who], to)

    def send_unsigned(self, method: str, actor: bytes, to: int) -> None:
        request, model = self.request(actor, to, 0), self.model
        may = model.impersonates_all or actor in model.impersonated
        if method == "eth_sendTransaction" and not may:
            assert self.refused(method, request) == NO_SIGNER
            return
        nonce = model.next_nonce(actor)
        self.sent(actor, nonce, to, 0, self.done(method, request))

    def do_impersonate(self, who: int, which: int) -> None:
        method = ("anvil_impersonateAccount", "evm_addAccount")[which % 2]
        self.done(method, hexed(ACTORS[who]))
        self.model.impersonated.add(ACTORS[who])

    def do_stop(self, who: int, which: int) -> None:
        method = ("anvil_stopImpersonatingAccount", "evm_removeAccount")[which % 2]
        self.done(method, hexed(ACTORS[who]))
        self.model.impersonated.discard(ACTORS[who])

    def do_impersonate_all(self, is_on: bool) -> None:
        self.done("anvil_autoImpersonateAccount", is_on)
        self.model.impersonates_all = is_on

    def do_drop(self, what: str, which: int) -> None:
        waiting = sorted(self.model.waiting)
        if what == "all":
            self.done("anvil_dropAllTransactions")
            self.model.waiting.clear()
        elif what == "sender":
            sender = SENDERS[which].address
            self.done("anvil_removePoolTransactions", hexed(sender))
            for key in waiting:
                if key[0] == sender:
                    del self.model.waiting[key]
        else:
            found = self.model.waiting.pop(waiting[0]) if waiting else None
            named = hexed(bytes(32) if found is None else found.hash)
            method = ("anvil_dropTransaction", "hardhat_dropTransaction")[which % 2]
            assert bool(self.ask(method, named)) is (found is not None)
            assert self.ask("hardhat_dropTransaction", hexed(bytes(32))) is False

    # --- Accounts set by hand ----------------------------------------------------------

    def put(self, *changes: Set) -> None:
        for change in changes:
            self.model.set(change)

    def do_balance(self, who: int, amount: int) -> None:
        self.done("anvil_setBalance", hexed(PEOPLE[who]), hex(amount))
        self.put(Set(PEOPLE[who], balance=amount))

    def do_balances(self, amount: int) -> None:
        self.done("anvil_setBalance", [hexed(each) for each in PEOPLE], amount)
        self.put(*(Set(each, balance=amount) for each in PEOPLE))

    def do_add(self, who: int, amount: int) -> None:
        self.done("anvil_addBalance", hexed(PEOPLE[who]), hex(amount))
        self.put(Set(PEOPLE[who], balance=self.model.world()[PEOPLE[who]].balance + amount))

    def do_nonce(self, who: int, amount: int) -> None:
        before = self.model.world()[PEOPLE[who]].nonce
        if amount == 9 and before:
            self.refused("anvil_setNonce", hexed(PEOPLE[who]), hex(before - 1))
        else:
            self.done("anvil_setNonce", hexed(PEOPLE[who]), hex(before + amount))
            self.put(Set(PEOPLE[who], nonce=before + amount))

    def do_code(self, who: int, amount: int) -> None:
        code = CODES[amount % len(CODES)]
        self.done("anvil_setCode", hexed(PEOPLE[who]), hexed(code))
        self.put(Set(PEOPLE[who], code=code))

    def do_slot(self, who: int, amount: int) -> None:
        """Only for an account with a nonce: one that has only storage is empty."""
        address, slot = PEOPLE[who], amount % SLOTS
        nonce = max(self.model.world()[address].nonce, 1)
        self.done("anvil_setNonce", hexed(address), hex(nonce))
        self.done("anvil_setStorageAt", hexed(address), hex(slot), f"0x{amount:064x}")
        self.put(Set(address, nonce=nonce), Set(address, slot=(slot, amount)))

    def do_load(self, who: int, amount: int) -> None:
        address = PEOPLE[who]
        nonce = max(self.model.world()[address].nonce, amount)
        state = f'{{"{hexed(address)}":{{"balance":"{hex(amount)}","nonce":"{hex(amount)}"}}}}'
        self.done("anvil_loadState", state)
        self.put(Set(address, balance=amount, nonce=nonce, code=b""))

    # --- Blocks and time ---------------------------------------------------------------

    def do_evm_mine(self) -> None:
        assert self.done("evm_mine") == "0x0"

    def do_interval_mine(self) -> None:
        assert self.done("hardhat_intervalMine") is True

    def do_mine(self, blocks: int, interval: int | None) -> None:
        before = self.model.height
        self.done("anvil_mine", hex(blocks), interval)
        assert int(self.done("eth_blockNumber"), 16) == before + blocks

    def do_mine_at(self, later: int) -> None:
        timestamp = self.timestamps()[-1] + later
        self.done("evm_mine", {"timestamp": timestamp, "blocks": 1})
        assert self.timestamps()[-1] == timestamp

    def do_automine(self, is_on: bool) -> None:
        self.done("evm_setAutomine", is_on)
        self.model.mining = "automine" if is_on else "manual"
        assert self.done("anvil_getAutomine") is is_on

    def do_interval_mining(self, seconds: int) -> None:
        self.done("evm_setIntervalMining", seconds)
        self.model.mining = "clock" if seconds else "manual"
        assert self.done("anvil_getIntervalMining") == (seconds or None)

    def do_flashblock_interval(self, milliseconds: int) -> None:
        self.done("foreblock_setFlashblockInterval", milliseconds)

    def do_pass(self, milliseconds: int) -> None:
        self.life.chain.run(milliseconds)

    def pending_time(self) -> int:
        return int(self.done("eth_getBlockByNumber", "pending", False)["timestamp"], 16)

    def do_increase_time(self, seconds: int) -> None:
        offset = self.done("evm_increaseTime", seconds)
        state = self.life.chain.sequencer.mining.state
        assert offset == state.offset
        if state.mining != "clock" and state.timestamp_interval is None:
            now = self.life.chain.clock.wall_ns() // SECOND + offset
            assert self.pending_time() == max(now, self.timestamps()[-1] + 1)

    def do_set_time(self, later: int) -> None:
        self.done("evm_setTime", self.timestamps()[-1] + later)

    def do_next_timestamp(self, later: int) -> None:
        last = self.timestamps()[-1]
        assert "Timestamp error" in self.refused("evm_setNextBlockTimestamp", last)
        self.done("evm_setNextBlockTimestamp", last + later)
        assert self.pending_time() == last + later

    def do_apart(self, seconds: int | None) -> None:
        if seconds is None:
            self.done("anvil_removeBlockTimestampInterval")
        else:
            self.done("anvil_setBlockTimestampInterval", seconds)
            assert self.pending_time() == self.timestamps()[-1] + max(seconds, 1)

    def do_coinbase(self, amount: int) -> None:
        self.done("anvil_setCoinbase", hexed(bytes([0xC0 + amount]) * 20))

    def do_randao(self, amount: int) -> None:
        self.done("hardhat_setPrevRandao", f"0x{amount:064x}")

    def do_gas_limit(self, amount: int) -> None:
        if self.rules == "optimism":  # elsewhere a limit may change by only a thousandth
            self.done("evm_setBlockGasLimit", hex(30_000_000 + amount))

    def do_min_price(self, amount: int) -> None:
        if self.rules == "optimism":
            self.done("anvil_setMinGasPrice", hex(amount * GWEI))

    # --- Snapshots and branches --------------------------------------------------------

    def do_snapshot(self) -> None:
        taken = int(self.done("evm_snapshot"), 16)
        assert taken not in self.snapshots
        self.snapshots[taken] = self.model.copy()
        shown = self.done("anvil_metadata")["snapshots"]
        assert {int(each, 16) for each in shown} == set(self.snapshots)

    def do_revert(self, back: int) -> None:
        ids = sorted(self.snapshots)
        wanted = ids[-1 - back] if back < len(ids) else 1_000
        assert self.done("evm_revert", hex(wanted)) is (wanted in ids)
        if wanted in ids:
            self.model = self.snapshots[wanted]
            self.snapshots = {each: self.snapshots[each] for each in ids if each < wanted}

    def do_reset(self) -> None:
        self.done("anvil_reset")
        self.model, self.snapshots = DevWorld(FIRST), {}

    def go_back(self, depth: int, method: str, *params: object, **how: Any) -> None:  # noqa: ANN401, of the model
        if depth > self.model.height:
            self.refused(method, *params)
            return
        self.done(method, *params)
        height = self.model.height - depth
        if depth or method == "anvil_rollback":
            self.model.go_back(height, **how)
        kept = self.snapshots.items()
        self.snapshots = {number: each for number, each in kept if each.height <= height}

    def do_rollback(self, depth: int) -> None:
        self.go_back(depth, "anvil_rollback", depth)

    def do_set_head(self, depth: int) -> None:
        target = self.model.height - depth
        if target >= 0:
            self.go_back(depth, "debug_setHead", hex(target))

    def do_reorg(self, depth: int) -> None:
        self.go_back(depth, "anvil_reorg", depth, [], empty=depth)

    def do_reorg_back(self, depth: int) -> None:
        self.go_back(depth, "foreblock_reorg", depth, puts_back=True, empty=depth)

    def do_reorg_with(self, depth: int, has_key: bool, to: int) -> None:
        """A reorganisation whose last block has a transaction, given as an object."""
        sender = SENDERS[0].address if has_key else ACTORS[0]
        if not 0 < depth <= self.model.height:
            return
        if not (has_key or self.model.impersonates_all or sender in self.model.impersonated):
            return
        nonce = self.model.nonces(self.model.height - depth)[sender]
        placed = [[self.request(sender, to, 0), depth - 1]]
        before = {each.hash for each in self.life.chain.sealed()}
        self.done("anvil_reorg", depth, placed)
        self.model.go_back(self.model.height - depth, empty=depth - 1)
        kept = self.snapshots.items()
        height = self.model.height - (depth - 1)
        self.snapshots = {number: each for number, each in kept if each.height <= height}
        block = self.life.chain.sealed()[self.model.height]
        assert block.hash not in before
        made = decode_transactions(list(block.transactions), unsigned=True)[-1]
        assert (made.sender, made.to) == (sender, PEOPLE[to])
        waiting, self.model.waiting = self.model.waiting, {}
        self.sent(sender, nonce, to, 0, hexed(made.hash))
        self.take_sealed(1)
        # A waiting transaction with this nonce has been replaced.
        self.model.waiting = {key: each for key, each in waiting.items() if key != (sender, nonce)}

    # --- Faults ------------------------------------------------------------------------

    def do_restart(self) -> None:
        self.done("foreblock_restartBlock")

    def do_tail(self) -> None:
        if not self.model.open:
            assert "no flashblock after its first" in self.refused("foreblock_dropTail")
            return
        tail = self.model.open.pop()
        self.life.names.drop_tail(self.model.height + 1)
        self.done("foreblock_dropTail")
        self.take_sealed(1)
        self.model.reapply(tail)

    def do_equivocate(self) -> None:
        place = self.done("foreblock_equivocate")
        assert int(place["blockNumber"], 16) == self.model.height + 1

    def do_kill(self) -> None:
        self.life.kill()
        self.model.waiting.clear()


@contextmanager
def trial(rules: str) -> Iterator[Trial]:
    with tempfile.TemporaryDirectory() as folder:
        found = Trial(Path(folder), rules)
        yield found
        found.end()
        found.life.close()
