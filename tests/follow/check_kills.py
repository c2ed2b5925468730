"""Check 11: a follower that is killed repeatedly under faults keeps its state.

The content of a commit is read from the store itself, after the kill and before the next start:
within one epoch it may only grow. Then the upstream is silent, so that every response of the next
follower comes from earlier state.
"""

import time
from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import NamedTuple

from follow.busy_world import CLONES, CONTRACTS
from follow.check_options import CheckOptions, Outcome, Scene, scene
from follow.fault_kinds import STORMS
from follow.follower import Follower, follower
from foreblock._engine import State, Store
from foreblock.errors import StateMissing
from support.servers.dev_processes import Network, RpcError
from support.servers.waiting import until

KILLS, FEW_KILLS = 100, 3
STORM_RATE = 0.05
STORM = ",".join(f"{kind}={STORM_RATE}" for kind in STORMS if kind not in {"hang", "delay"})
WARM_SECONDS = 3.0
LONGEST_LIFE = 3.0  # seconds from a healthy follower to its end
ASKED = 8  # accounts that readers request in each run
TOKEN = CLONES[0]  # read first in every run


class Held(NamedTuple):
    """The content of a store after its writer was killed."""

    epoch: int
    latest: int
    code: bytes | None  # of the token, if it is known
    accounts: dict[bytes, int]  # balances of known accounts


def kills(options: CheckOptions) -> Outcome:
    """Check 11."""
    outcome = Outcome()
    with scene(options) as found:
        judge_kills(outcome, options, found, KILLS if options.is_whole else FEW_KILLS)
    return outcome


def judge_kills(outcome: Outcome, options: CheckOptions, found: Scene, count: int) -> None:
    """Kill the follower and its successors this many times."""
    pick, asked = Random(options.seed), [TOKEN, *CONTRACTS]
    times, lost, epochs = [], 0, 0
    _live(found.follower.network, pick, asked, options)
    found.follower.kill()
    held = _held(found.plan.data, asked)
    for _ in range(count):
        found.proxy.silent(3600)
        begun = time.monotonic()
        with follower(found.plan, stand_in=options.stand_in, is_ready=False) as running:
            times.append(_warm(outcome, running.network, held) - begun)
            found.proxy.faults(STORM)
            found.proxy.silent(0)
            _go_on(found, running)
            _live(running.network, pick, asked, options)
            running.kill()
        before, held = held, _held(found.plan.data, asked)
        epochs += before.epoch != held.epoch
        if before.epoch == held.epoch:
            lost += len(before.accounts.keys() - held.accounts.keys())
    outcome.must(lost == 0, f"{lost} accounts lost that a commit held, {epochs} new epochs")
    outcome.must(len(held.accounts) > 1, f"{len(held.accounts)} accounts known at the end")
    is_soon = max(times) <= WARM_SECONDS or options.at_any_speed
    told = f"{len(times)} kills, the first warm response after {max(times):.1f} s at most"
    outcome.must(is_soon, told)


def _live(network: Network, pick: Random, asked: list[bytes], options: CheckOptions) -> None:
    """Let readers request known and new state for a while."""
    until(lambda: _ask(network, "eth_getCode", _hex(TOKEN), "latest"), "the token is known")
    new = [pick.randbytes(20) for _ in range(ASKED)]
    for address in new:
        _ask(network, "eth_getBalance", _hex(address), "latest")
    asked += new
    time.sleep(pick.uniform(0, LONGEST_LIFE if options.is_whole else LONGEST_LIFE / 3))


def _held(folder: Path, asked: Collection[bytes]) -> Held:
    """The committed values of these accounts."""
    store = Store(str(folder), write=False)
    try:
        with store.view() as view:
            latest = view.heads.latest
            assert latest is not None, "it has begun"
            state = view.state(latest[0])
            known = set(asked) - set(state.missing(list(asked), {}).accounts)
            balances = {each: _balance(state, each) for each in known}
            return Held(view.heads.base.epoch, latest[0], _code(state), balances)
    finally:
        store.close()


def _code(state: State) -> bytes | None:
    try:
        return state.code(TOKEN)
    except StateMissing:
        return None


def _balance(state: State, address: bytes) -> int:
    account = state.account(address)
    return 0 if account is None else account.balance


def _warm(outcome: Outcome, network: Network, held: Held) -> float:
    """Read all known state while no upstream responds; return the time of the first response."""
    block = hex(held.latest)
    header = ("eth_getBlockByNumber", block, False)
    until(lambda: _ask(network, *header), "a warm read is answered")
    came = time.monotonic()
    code = _ask(network, "eth_getCode", _hex(TOKEN), block)
    if held.code is not None and code != _hex(held.code):
        outcome.must(False, f"the code of a token is {code}")
    for address, balance in held.accounts.items():
        said = _ask(network, "eth_getBalance", _hex(address), block)
        if said != hex(balance):
            outcome.must(False, f"{_hex(address)} has {said}, and {balance:#x} was committed")
    return came


def _go_on(found: Scene, running: Follower) -> None:
    """Wait until it reaches the chain's current state."""
    wanted = found.upstream.main.latest()

    def is_back() -> bool:
        shown = _ask(running.network, "eth_blockNumber")
        return shown is not None and int(shown, 16) >= wanted

    until(is_back, "it continues after a kill")


def _ask(network: Network, method: str, *params: object) -> str | None:
    """A response, or None: no listener yet, or a fault."""
    try:
        return str(network.ask(method, *params))
    except (OSError, RpcError, TypeError):
        return None


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
