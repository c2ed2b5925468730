"""Vyper contracts in titanoboa on foreblock; py-evm, which it comes with, is the oracle.

Tests return what they see. Addresses differ, and so contracts have names there.
"""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import boa
import pytest
from eth.exceptions import InsufficientFunds

from foreblock_titanoboa import Env

Contract = Any
Seen = Any
SOURCE = str(Path(__file__).with_name("Bank.vy"))
BOB, CAROL = ("0x" + each * 20 for each in ("b0", "ca"))


def seen_on(env: boa.Env, test: Callable[[], Seen]) -> Seen:
    with boa.set_env(env):
        return test()


def as_on_py_evm(test: Callable[[], Seen]) -> Callable[[], None]:
    """A test that sees the same in both environments."""

    @wraps(test)
    def compared() -> None:
        expected = seen_on(boa.Env(), test)
        assert expected is not None
        assert seen_on(Env(), test) == expected

    return compared


def bank(limit: int = 100, **options: Any) -> Contract:
    return boa.load(SOURCE, limit, **options)


def failure(call: Callable[[], object]) -> Seen:
    """The frames of a failure: the reason, what the compiler says of the line, and the locals."""
    with pytest.raises(boa.BoaError) as raised:
        call()
    frames = raised.value.stack_trace
    return [
        (
            each.pretty_vm_reason,
            each.error_detail,
            each.dev_reason and each.dev_reason.reason_str,
            each.ast_source.lineno,
            {name: value for name, value in each.frame_detail.items() if isinstance(value, int)},
        )
        for each in frames
    ]


@as_on_py_evm
def test_calls_return_values_and_events() -> Seen:
    made = bank(100)
    paid = made.pay(BOB, 7), made.pay(BOB, 5)
    (event,) = made.get_logs()
    return (
        paid,
        event.owner,
        event.amount,
        made.total(),
        made.balances(BOB),
        made._storage.total.get(),
    )


@as_on_py_evm
def test_failures_have_their_reasons_lines_and_locals() -> Seen:
    made, other = bank(100), bank(100)
    with boa.reverts("above the limit"):
        made.pay(BOB, 101)
    with boa.reverts(dev="nothing to pay"):
        made.pay(BOB, 0)
    with boa.reverts(compiler="safesub"):
        made.eval("self.total = 5")
        made.pay(BOB, 60)
    return (
        failure(lambda: made.pay(BOB, 101)),
        failure(lambda: made.pay(BOB, 0)),
        failure(lambda: other.pay_through(made, BOB, 101)),
        made.total(),
    )


@as_on_py_evm
def test_a_constructor_fails() -> Seen:
    with pytest.raises(boa.BoaError, match="no limit"):
        bank(0)
    return failure(lambda: bank(0))[0][:2]


@as_on_py_evm
def test_events_of_inner_calls_are_in_order() -> Seen:
    made, other = bank(), bank()
    other.pay_through(made, BOB, 9)
    names = {made.address: "made", other.address: "other"}
    return [(names[each.address], each.amount) for each in other.get_logs()]


@as_on_py_evm
def test_the_tree_of_calls_has_their_sources() -> Seen:
    made, other = bank(), bank()
    other.pay_through(made, BOB, 9)
    tree = other.call_trace()
    return [str(each.source) for each in (tree, *tree.children)], tree.is_error, tree.output


@as_on_py_evm
def test_an_anchor_takes_everything_back() -> Seen:
    made = bank()
    with boa.env.anchor():
        made.pay(BOB, 1)
        with boa.env.anchor():
            made.pay(BOB, 1)
            boa.env.time_travel(seconds=240)
            boa.env.set_balance(CAROL, 5)
            inside = made.balances(BOB), boa.env.get_balance(CAROL)
        between = made.balances(BOB), boa.env.get_balance(CAROL)
    number, now = made.block_now()
    return inside, between, made.balances(BOB), number, now - boa.env.timestamp


@as_on_py_evm
def test_a_simulated_call_changes_nothing() -> Seen:
    made = bank()
    return made.pay(BOB, 3, simulate=True), made.balances(BOB), made.total()


@as_on_py_evm
def test_state_is_read_and_set() -> Seen:
    env, made = boa.env, bank()
    env.set_balance(BOB, 10**18)
    env.set_storage(made.address, 0, 77)
    env.set_code(CAROL, bytes.fromhex("602a60005260206000f3"))
    return (
        env.get_balance(BOB),
        env.get_storage(made.address, 0),
        made.total(),
        env.get_code(CAROL),
        env.raw_call(CAROL).output,
        env.get_code(made.address) == made.bytecode,
    )


@as_on_py_evm
def test_ether_is_paid_by_the_sender_alone() -> Seen:
    made = bank()
    with pytest.raises(InsufficientFunds):
        made.take(value=1, sender=BOB)
    boa.env.set_balance(BOB, 10)
    with boa.env.prank(BOB):
        taken = made.take(value=4)
    return taken, boa.env.get_balance(BOB), boa.env.get_balance(made.address)


@as_on_py_evm
def test_time_stands_still_until_it_is_moved() -> Seen:
    made = bank()
    start = made.block_now()
    made.pay(BOB, 1)
    seen = []
    for move in ({"seconds": 60}, {"blocks": 3}, {"blocks": 2, "block_delta": 5}):
        boa.env.time_travel(**move)
        seen.append([a - b for a, b in zip(made.block_now(), start, strict=True)])
    boa.env.timestamp += 1000
    assert made.block_now()[1] == boa.env.timestamp
    return start[0], seen, made.block_now()[1] - start[1], made.balances(BOB)


@as_on_py_evm
def test_private_functions_and_statements_run_in_a_contract() -> Seen:
    made = bank()
    made.inject_function("@external\ndef more(by: uint256) -> uint256:\n    return self.total + by")
    twice = made.internal._twice(21)
    made.eval("self.total += 10")
    return twice, made.eval("self.total"), made.inject.more(5), made.total(), made.pay(BOB, 1)


@as_on_py_evm
def test_a_contract_is_deployed_at_a_chosen_address() -> Seen:
    boa.env.set_balance(boa.env.eoa, 9)
    made = bank(50, override_address=CAROL, value=9)
    return made.address, made.pay(BOB, 50), made.total(), boa.env.get_balance(CAROL)


@as_on_py_evm
def test_proxies_and_contracts_of_blueprints_are_known() -> Seen:
    deployer = boa.load_partial(SOURCE)
    made, blueprint = deployer.deploy(100), deployer.deploy_as_blueprint()
    proxy = boa.env.lookup_contract(made.copy_of(made))
    boa.env.set_storage(proxy.address, 0, 30)
    child = deployer.at(made.made_of(blueprint, 20))
    simple = boa.loads_partial("seven: public(constant(uint256)) = 7").deploy_as_blueprint()
    known = boa.env.lookup_contract(made.made_without(simple))
    return proxy.pay(BOB, 30), made.total(), child.pay(BOB, 20), child.total(), known.seven()


def test_contracts_print(capsys: pytest.CaptureFixture[str]) -> None:
    for env in (boa.Env(), Env()):
        with boa.set_env(env):
            made = bank()
            made.say(5)
            with pytest.raises(boa.BoaError):
                made.say(0)
            assert capsys.readouterr().err.split() == ["number", "5", "number", "0"]


def test_a_call_without_end_runs_out_of_gas() -> None:
    with boa.set_env(Env()):
        made = bank()
        with pytest.raises(boa.BoaError, match="out of gas"):
            made.spin()


def test_the_chain_is_a_dev_chain() -> None:
    env = Env(chain_id=5, seed=7)
    with boa.set_env(env):
        made = bank()
        made.pay(BOB, 7)
        sealed = env.chain.seal()
        receipts = [env.chain.receipt(str(each)) for each in sealed.transactions]
        assert [(each.status, len(each.logs)) for each in receipts if each] == [(1, 0), (1, 1)]
        assert env.chain.call(made.address, "balances(address)(uint256)", BOB) == 7
        assert env.evm.patch.chain_id == 5
        assert made.balances(BOB) == 7


def test_a_block_takes_thousands_of_transactions() -> None:
    with boa.set_env(Env()):
        made = bank(10**6)
        number = made.block_now()[0]
        for _ in range(500):
            made.pay(BOB, 1)
        assert (made.balances(BOB), made.block_now()[0]) == (500, number)


def test_what_py_evm_alone_can_do_is_refused() -> None:
    env = Env()
    with pytest.raises(NotImplementedError):
        env.fork("http://127.0.0.1:1", deprecated=False)
    with pytest.raises(NotImplementedError, match="ProfilingGasMeter"):
        env.enable_gas_profiling()
