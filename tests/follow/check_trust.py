"""Check 6: false data from trusted upstreams is found by the audit, or by the next flashblock."""

import time

from follow.busy_world import CLONES, MINTED, PROXY, number
from follow.check_live import NEED_PROOFS, judge_after
from follow.check_options import CheckOptions, Outcome, Scene, scene
from follow.check_weather import back
from foreblock._engine import keccak256
from support.servers.dev_processes import Network, RpcError
from support.servers.waiting import until

AUDIT_SECONDS = 10.0
RECEIPTS = 100  # of compared transactions
REFUSED = "Diverged"
TOKEN_HELD = "0x" + CLONES[MINTED - 1].hex()  # by all senders from the start
LIE = 0x63


def audit(options: CheckOptions) -> Outcome:
    """A false slot without an effect on a receipt is dropped with all dependent state.

    With full trust, one that affects a receipt is rejected at its flashblock.
    """
    outcome = Outcome()
    with scene(options, trust="audited") as found:
        judge_audit(outcome, options, found)
    lies = [_balance_of(each.address) for each in found.load.senders]
    # Without proofs, only the value of a slot is known.
    with scene(options, trust="trusted", faults="no-proofs=1,no-overrides=1", lies=lies) as found:
        _judge_flashblocks(outcome, options, found)
    return outcome


def judge_audit(outcome: Outcome, options: CheckOptions, found: Scene) -> None:
    """Serve one false value to an audited follower, and check its reaction."""
    network = found.follower.network
    slot, served, true = _believed_lie(found)
    read = ("eth_getStorageAt", TOKEN_HELD, slot, "latest")
    begun = time.monotonic()
    found.proxy.lie()
    outcome.must(served != true, f"first served: {served}, true is {true}")
    chain = found.upstream.main
    until(lambda: _asked(network, *read) == chain.ask(*read), "the truth is served")
    seconds = time.monotonic() - begun
    is_soon = seconds <= AUDIT_SECONDS or options.at_any_speed
    outcome.must(is_soon, f"the truth is served after {seconds:.1f} s")
    until(lambda: "Untrue 1" in network.probe("/readyz?verbose")[1], "/readyz reports it")
    back(found.upstream.main, network)
    judge_after(outcome, options, found, NEED_PROOFS)
    _, said = network.probe("/readyz?verbose")
    outcome.lines += [line for line in said.splitlines() if "audit" in line or "anchored" in line]
    outcome.must("trust: audited" in said, "it reports the mode audited")


def _believed_lie(found: Scene) -> tuple[str, object, object]:
    """A slot with a false value, the false value and the true one.

    Known slots are not requested, so the holders of a token are tried in turn.
    """
    network, chain = found.follower.network, found.upstream.main
    network.ask("eth_getBalance", TOKEN_HELD, "latest")  # so that its slots come without proofs
    for each in found.load.senders:
        _, slot, _ = _balance_of(each.address)
        read = ("eth_getStorageAt", TOKEN_HELD, slot, "latest")
        found.proxy.lie((TOKEN_HELD, slot, hex(LIE)))
        served, true = network.ask(*read), chain.ask(*read)
        if int(str(served), 16) == LIE:
            break
    return slot, served, true


def _judge_flashblocks(outcome: Outcome, options: CheckOptions, found: Scene) -> None:
    chain, network = found.upstream.main, found.follower.network
    until(lambda: REFUSED in network.probe("/readyz?verbose")[1], "a flashblock is refused")
    found.proxy.lie()  # immediately: data for the next anchor is trusted again
    sent = [each.hash for each in found.load.sent[-RECEIPTS:]]
    served = [_asked(network, "eth_getTransactionReceipt", each) for each in sent]
    true = [chain.ask("eth_getTransactionReceipt", each) for each in sent]
    false = [
        each
        for mine, each in zip(served, true, strict=True)
        if isinstance(mine, dict) and mine["status"] != each["status"]
    ]
    _, said = network.probe("/readyz?verbose")
    outcome.lines += [line for line in said.splitlines() if "last error" in line]
    outcome.must(not false, f"{len(false)} of {len(sent)} receipts are false")
    outcome.must("trust: trusted" in said, "it reports the mode trusted")
    # The next anchor has no earlier data.
    until(lambda: _asked(network, "eth_blockNumber") is not None, "a response")
    back(chain, network)
    judge_after(outcome, options, found, NEED_PROOFS)


def _balance_of(owner: bytes) -> tuple[str, str, str]:
    """A false slot value: no balance of the token behind the proxy."""
    slot = keccak256(number(owner).to_bytes(32) + bytes(32))
    return "0x" + PROXY.hex(), "0x" + slot.hex(), "0x0"


def _asked(network: Network, *request: object) -> object:
    """A response, or None while there is none."""
    try:
        return network.ask(*request)  # type: ignore[arg-type]
    except RpcError:
        return None
