"""Dev chains under everything at once: all their methods, transactions, accidents and kills.

Each example is a list of requests, as users send them. After each one the chain is held against a
plain model (`support.chains.dev_world`), by every name: people and senders at pending, at latest
and at sealed blocks; flashblocks by place and hash; what was given up, which no name may find;
logs by a filter, and blocks by a cursor, which were followed from the start. At the end the roots
of all states are computed from scratch, blocks pass the rules of the import up to the first cheat,
and a follower that heard the feed has the same blocks.

FOREBLOCK_DEV_EXAMPLES says how many examples there are, FOREBLOCK_DEV_STEPS how long a life is.
"""

import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreblock.errors import NotHere
from foreblock.ledger.genesis.genesis_file import Genesis, GenesisAccount
from foreblock.ledger.reading.blocks import ByPlace
from foreblock.methods import make_families
from foreblock.methods.options import Options
from foreblock.methods.sequencing import Sequencing
from foreblock.types import decode_transactions
from methods.test_given_up import check_unknown
from support.chains.checking import check_blocks_by_import
from support.chains.dev_chain import ACCOUNTS, GWEI, SECOND, send
from support.chains.dev_life import DevLife
from support.chains.dev_service import InProcess
from support.chains.dev_world import SLOTS, DevWorld, Person, Sent, Set, World
from support.chains.ethereum_chain import genesis_of
from support.chains.whole_state import check_roots
from support.servers.long_work import scheduler

EXAMPLES = int(os.environ.get("FOREBLOCK_DEV_EXAMPLES", "10"))
STEPS_OF_A_LIFE = int(os.environ.get("FOREBLOCK_DEV_STEPS", "60"))
SENDERS = ACCOUNTS[:3]
PEOPLE = tuple(bytes([0xD0 + each]) * 20 for each in range(3))
ACTORS = tuple(bytes([0xE0 + each]) * 20 for each in range(2))  # who send without a signature
LOGGER = bytes.fromhex("600160006000a100")  # emits a log with one topic
CODES = (b"", b"\x00", LOGGER)
LOUD = PEOPLE[-1]  # a contract from the start
FIRST = {each: Person() for each in PEOPLE} | {LOUD: Person(nonce=1, code=LOGGER)}
NO_SIGNER = "No Signer available"

WHO, ACTOR, TO, AMOUNT, DEPTH = range(3), range(2), range(len(PEOPLE)), range(10), range(4)
LATER = (1, 13, 100)  # seconds
# What may happen, and with which arguments.
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
    "revert": (DEPTH,),  # to which, counted from the last
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
OFTEN = ("send_raw", "send", "impersonated", "balance", "snapshot", "revert", "tail", "kill")
RARELY = ("reset",)
CHEATS = ("balance", "balances", "add", "nonce", "code", "slot", "load")
# Methods that change nothing that is checked here, or blocks that no other node would take.
ELSEWHERE = {
    "anvil_dealERC20", "anvil_dumpState", "anvil_enableTraces", "anvil_getGenesisTime",
    "anvil_nodeInfo", "anvil_setChainId", "anvil_setERC20Allowance", "anvil_setLoggingEnabled",
    "anvil_setNextBlockBaseFeePerGas", "anvil_setRpcUrl", "eth_networkId", "eth_requestAccounts",
    "eth_sign", "eth_signTransaction", "eth_signTypedData_v4", "foreblock_closeFlashblock",
    "foreblock_setFaults", "hardhat_setBlockTimestampInterval", "personal_sign",
    "personal_unlockAccount",
}  # fmt: skip
step = st.sampled_from([*STEPS, *OFTEN]).flatmap(
    lambda name: st.tuples(st.just(name), *map(st.sampled_from, STEPS[name]))
)


def hexed(value: bytes) -> str:
    return "0x" + value.hex()


def genesis(rules: str) -> Genesis:
    """With actors who can pay for their gas, where that is paid, and people as the model says."""
    found = genesis_of(rules)
    some = {each: GenesisAccount(balance=10**24) for each in ACTORS}
    some[LOUD] = GenesisAccount(nonce=FIRST[LOUD].nonce, code=FIRST[LOUD].code)
    return replace(found, accounts=dict(found.accounts) | some)


class Trial:
    """A chain and the model of it."""

    def __init__(self, folder: Path, rules: str) -> None:
        self.folder = folder
        self.rules = rules
        self.life = DevLife(folder, genesis(rules))
        self.model = DevWorld(FIRST)
        self.snapshots: dict[int, DevWorld] = {}
        self.known: set[bytes] = set()  # transactions
        self.highest = 0
        self.commit = 0
        self.used: set[str] = set()  # methods
        self.finish()

    # --- Steps -------------------------------------------------------------------------

    def do(self, name: str, *arguments: Any) -> None:  # noqa: ANN401, of the step
        number = self.life.chain.sequencer.block.number
        job = self.life.names.job(number)
        getattr(self, f"do_{name}")(*arguments)
        self.life.settle()
        if name not in {"revert", "reset", "rollback", "set_head", "reorg", "reorg_back"}:
            self.life.names.hear(self.life.chain.published)
            begun_anew = self.life.names.job(number) not in {job, b""}
            if begun_anew and name != "reorg_with":
                self.model.begin_anew()
        self.finish()

    def finish(self) -> None:
        """Take what was sealed into the model, and look at everything."""
        self.life.settle()
        self.take_sealed()
        self.model.run()
        self.life.look()
        self.check()

    def take_sealed(self, most: int | None = None) -> None:
        blocks = self.life.chain.sealed()[self.model.height :]
        for block in blocks[:most]:
            ran = decode_transactions(list(block.transactions), unsigned=True)
            self.model.seal([each.hash for each in ran if each.hash in self.known])

    def ask(self, method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
        self.used.add(method)
        return self.life.ask(method, *params)

    def done(self, method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
        """The result of a request that must succeed."""
        found = self.ask(method, *params)
        assert not (isinstance(found, dict) and "code" in found), (method, found)
        return found

    def refused(self, method: str, *params: object) -> str:
        """Why a request was refused."""
        found = self.ask(method, *params)
        assert isinstance(found, dict), (method, found)
        assert found["code"] in {-32602, -32000}, found
        return str(found["message"])

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
        """With gas for the code of any time, and fees that every later base fee is below."""
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
            return  # nothing would mine it
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
        """Of an account that has a nonce: one that has only storage is empty."""
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

    def timestamps(self) -> list[int]:
        genesis = self.life.chain.genesis.timestamp
        return [genesis, *(each.header.timestamp for each in self.life.chain.sealed())]

    def do_increase_time(self, seconds: int) -> None:
        offset = self.done("evm_increaseTime", seconds)
        state = self.life.chain.sequencer.state
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
        if self.rules == "optimism":  # elsewhere a limit may move by a thousandth only
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
        """A reorganisation with a transaction in its last block, which is given as an object."""
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
        # One that waited with this nonce has lost its place.
        self.model.waiting = {key: each for key, each in waiting.items() if key != (sender, nonce)}

    # --- Accidents ---------------------------------------------------------------------

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
        self.model.take_up(tail)

    def do_equivocate(self) -> None:
        place = self.done("foreblock_equivocate")
        assert int(place["blockNumber"], 16) == self.model.height + 1

    def do_kill(self) -> None:
        self.life.kill()
        self.model.waiting.clear()

    # --- Checks ------------------------------------------------------------------------

    def check(self) -> None:
        model = self.model
        self.highest = max(self.highest, model.height)
        sealed = self.life.chain.sealed()
        assert len(sealed) == model.height
        assert self.life.watchers.sealed == [each.hash for each in sealed]
        times = self.timestamps()
        assert all(one < other for one, other in pairwise(times))
        assert {each.hash for each in self.life.chain.sequencer.pooled()} == {
            each.hash for each in model.waiting.values()
        }
        with self.life.view() as view:
            assert view.commit >= self.commit
            self.commit = view.commit
            assert self.read(view, "latest") == (model.latest(), model.nonces(model.height))
            for height in {0, model.height // 2, model.height}:
                assert self.read(view, height) == (model.world(height), model.nonces(height))
            assert self.read(view, "pending") == (model.world(), model.nonces())
            self.check_places(view)
        self.check_given_up({each.hash for each in sealed})

    def read(self, view: Any, block: Any) -> tuple[World, dict[bytes, int]]:  # noqa: ANN401, any name
        state = view.state(view.resolve(block))
        people = {
            each: Person(
                state.balance(each),
                state.nonce(each),
                state.code(each),
                [state.storage(each, slot) for slot in range(SLOTS)],
            )
            for each in PEOPLE
        }
        senders = (*(each.address for each in SENDERS), *ACTORS)
        nonces = {each: state.nonce(each) for each in senders}
        return people, {each: nonce for each, nonce in nonces.items() if nonce}

    def check_places(self, view: Any) -> None:  # noqa: ANN401, a view
        places = self.life.names.places
        for (number, index), hashed in places.items():
            assert view.resolve(ByPlace(number, index)).hash == hashed, (number, index)
            if (number, index + 1) not in places:
                with pytest.raises(NotHere):
                    view.resolve(ByPlace(number, index + 1))
        pending = view.resolve("pending")
        assert places[pending.number, pending.index] == pending.hash
        with pytest.raises(NotHere):
            view.resolve(ByPlace(pending.number + 1, 0))

    def check_given_up(self, sealed: set[bytes]) -> None:
        """No name finds what was given up; some of all names, by chance that is always the same."""
        gone = self.life.names.ever - self.life.names.live - sealed
        chance = random.Random(len(gone))
        lost = self.known - self.model.hashes()
        check_unknown(
            self.life.client,
            {hexed(each) for each in chance.sample(sorted(gone), min(len(gone), 3))},
            {hexed(each) for each in chance.sample(sorted(lost), min(len(lost), 3))},
        )

    def end(self) -> None:
        """Let the chain be higher than ever, and hold it against rules it does not use."""
        self.done("anvil_mine", hex(self.highest - self.model.height + 1))
        self.finish()
        check_roots(self.life.chain)
        cheated = [
            number
            for number, block in enumerate(self.model.blocks, 1)
            if any(isinstance(each, Set) for each in block)
        ]
        sealed = self.life.chain.sealed()
        honest = sealed[: cheated[0] - 1] if cheated else sealed
        check_blocks_by_import(self.life.chain, honest, self.folder / "check")
        self.life.check_follower(is_cheated=bool(cheated))


@contextmanager
def trial(rules: str) -> Iterator[Trial]:
    with tempfile.TemporaryDirectory() as folder:
        found = Trial(Path(folder), rules)
        yield found
        found.end()
        found.life.close()


RULES = pytest.mark.parametrize("rules", ["optimism", "ethereum"])


@RULES
@given(st.lists(step, max_size=30))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_everything_leaves_a_chain_as_the_model_says(
    rules: str, steps: list[tuple[Any, ...]]
) -> None:
    with trial(rules) as found:
        for each in steps:
            found.do(*each)


@RULES
@pytest.mark.parametrize("left_out", [RARELY, RARELY + CHEATS], ids=["cheating", "honest"])
def test_a_long_life(rules: str, left_out: tuple[str, ...]) -> None:
    chance = random.Random(16)
    kinds = [each for each in (*STEPS, *OFTEN) if each not in left_out]
    with trial(rules) as found:
        for _ in range(STEPS_OF_A_LIFE):
            name = chance.choice(kinds)
            found.do(name, *map(chance.choice, STEPS[name]))
        assert found.highest > STEPS_OF_A_LIFE // 10


def test_every_method_of_a_dev_chain_is_tried() -> None:
    sequencing = Sequencing(commands=InProcess(None))  # type: ignore[arg-type]
    families = [make_families(Options(), scheduler(1), each) for each in (None, sequencing)]
    some, more = ({each.name for family in all_ for each in family.methods} for all_ in families)
    with trial("optimism") as found:
        found.do("evm_mine")
        for name, arguments in STEPS.items():
            for place in range(3 if name == "drop" else 2 if arguments else 1):
                found.do(name, *(each[place] for each in arguments))
    assert more - some == (found.used | ELSEWHERE) & more - some
