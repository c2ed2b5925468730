"""The fixtures of foreblock.pytest_plugin, in runs of pytest of their own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.plugin_runs import run_pytest

pytest_plugins = ["pytester"]


def run(pytester: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(f"BOB = b'\\xb0' * 20\nSEEN = []\n{source}")
    return run_pytest(pytester, *options)


def test_a_chain_returns_after_each_test(pytester: pytest.Pytester) -> None:
    done = run(
        pytester,
        """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_payment(chain, number):
    assert chain.balance(BOB) == 0
    assert chain.block().number == 0
    chain.send(BOB, value=1)
    chain.advance(100)
    SEEN.append(chain.block().hash)
    assert set(SEEN) == {SEEN[0]}

def test_end(chain):
    chain.close()

def test_reset(chain):
    chain.rpc("anvil_reset")
    chain.seal(2)

def test_after_both(chain):
    assert (chain.balance(BOB), chain.block().number) == (0, 0)
""",
    )
    done.assert_outcomes(passed=6)


def test_wider_chains_are_set_up_once(pytester: pytest.Pytester) -> None:
    done = run(
        pytester,
        """
import pytest

@pytest.fixture(scope="module")
def paid(module_chain):
    SEEN.append(module_chain)
    module_chain.send(BOB, value=5)

@pytest.mark.parametrize("number", range(2))
def test_of_the_module(chain, paid, number):
    assert chain.balance(BOB) == 5
    chain.send(BOB, value=1)

def test_it_was_set_up_once(module_chain):
    assert SEEN == [module_chain]
    assert module_chain.balance(BOB) == 5
    module_chain.send(BOB, value=2)

def test_it_stays(module_chain, session_chain):
    assert module_chain.balance(BOB) == 7
    assert session_chain.balance(BOB) == 0

def test_of_the_session(chain, session_chain):
    assert chain is session_chain

@pytest.mark.chain(seed=9)
def test_with_settings_of_its_own(chain, paid):
    pass
""",
    )
    done.assert_outcomes(passed=5, errors=1)
    done.stdout.fnmatch_lines(["*the test has the settings of module_chain*"])


def test_markers_and_options_have_the_settings(pytester: pytest.Pytester) -> None:
    source = """
import pytest

def prague(chain):
    return "requestsHash" in chain.block().json

def is_optimism(chain):
    return bool(chain.code("0x4200000000000000000000000000000000000015"))

def test_options(chain, session_chain):
    assert not is_optimism(chain) and prague(chain)

@pytest.mark.chain(fork="cancun", mode="manual", chain_id=5)
def test_marker(chain):
    assert not is_optimism(chain) and not prague(chain)
    assert chain.send(BOB, value=1).receipt is None
    assert chain.rpc("eth_chainId") == "0x5"

@pytest.mark.chain(rules="optimism", fork="isthmus")
def test_other_rules(chain):
    assert is_optimism(chain)

@pytest.mark.chain(colour="blue")
def test_unknown(chain):
    pass
"""
    options = ("--chain-rules=ethereum", "--chain-fork=prague", "--chain-seed=3")
    run(pytester, source, *options, "--strict-markers").assert_outcomes(passed=3, errors=1)


def test_a_followed_chain_has_faults_of_its_own(pytester: pytest.Pytester) -> None:
    source = """
import pytest

pytestmark = pytest.mark.chain(mode="manual")

def test_follower(followed_chain, chain):
    assert chain is followed_chain.chain
    chain.send(BOB, value=1)
    chain.flashblock()
    followed_chain.wait()
    assert followed_chain.follower.at("pending").balance(BOB) == 1

@pytest.mark.parametrize("number", range(2))
@pytest.mark.chain(faults=("drop=1",))
def test_marker(followed_chain, number):
    chain, follower = followed_chain
    chain.send(BOB, value=1)
    chain.flashblock()
    followed_chain.wait()
    assert (chain.at("pending").balance(BOB), follower.at("pending").balance(BOB)) == (1, 0)

def test_option(followed_chain):
    chain, follower = followed_chain
    chain.seal()
    followed_chain.wait()
    assert follower.outcomes["Malformed"] > 0

def test_failure(followed_chain):
    chain, follower = followed_chain
    chain.send(BOB, value=1)
    chain.flashblock()
    followed_chain.wait()
    chain.drop_tail()
    assert follower.at("pending").balance(BOB) == 0
"""
    done = run(pytester, source, "--chain-faults=garbage=1")
    done.assert_outcomes(passed=4, failed=1)
    done.stdout.fnmatch_lines(["*- follower -*", "*Transaction: 0x*", "*Flashblock: 1.*"])


def test_a_failure_shows_what_happened(pytester: pytest.Pytester) -> None:
    done = run(
        pytester,
        """
def test_earlier(chain):
    chain.send(BOB, value=1)

def test_payment(chain):
    chain.set_code(BOB, "0x60006000fd")
    sent = chain.send(BOB, value=1, check=False)
    assert sent.receipt.status == 1

def test_raised(chain):
    chain.set_code(BOB, "0x60006000fd")
    chain.send(BOB)
""",
    )
    done.assert_outcomes(passed=1, failed=2)
    output = done.stdout.str()
    assert output.count("Transaction: 0x") == 2
    done.stdout.fnmatch_lines(["*- chain -*", "*CALL 0xB0B0b0*reverted*", "*Error: reverted*"])
    done.stdout.fnmatch_lines(["*Reverted: execution reverted*", "*CALL 0xB0B0b0*reverted*"])


def test_a_failure_shows_what_was_lost(pytester: pytest.Pytester) -> None:
    done = run(
        pytester,
        """
import pytest

pytestmark = pytest.mark.chain(mode="manual")

def fails(chain):
    chain.set_code(BOB, "0x60006000fd")
    chain.send(BOB, value=1)
    chain.flashblock()

def test_pending(chain):
    fails(chain)
    assert chain.block().number == 1

def test_tail(chain):
    fails(chain)
    chain.drop_tail()
    assert chain.nonce(chain.accounts[0]) == 1

def test_snapshot(chain):
    with chain.snapshot():
        fails(chain)
        chain.seal()
    assert chain.block().number == 1
""",
    )
    done.assert_outcomes(failed=3)
    traced = ["*CALL 0xB0B0b0*reverted*", "*Transaction: 0x*", "*Error: reverted*"]
    dropped = ["*Flashblock: 1.*", "*Dropped flashblock: 1.*", "*Block Number: 1*", "*Waiting: 0x*"]
    removed = ["*Block Number: 1*", "*Removed blocks: 1, after block 0*"]
    done.stdout.fnmatch_lines([*traced, "*Flashblock: 1.*", *traced, *dropped, *traced, *removed])


def test_each_example_of_hypothesis_begins_where_the_test_did(pytester: pytest.Pytester) -> None:
    done = run(
        pytester,
        """
from hypothesis import given, settings, strategies

@settings(max_examples=10, deadline=None)
@given(value=strategies.integers(1, 10))
def test_payment(module_chain, value):
    assert module_chain.balance(BOB) == 0
    module_chain.send(BOB, value=value)
    SEEN.append(value)

def test_there_were_several(module_chain):
    assert len(SEEN) > 2
    assert module_chain.balance(BOB) == 0
""",
    )
    done.assert_outcomes(passed=2)


def test_other_fixtures_may_have_these_names(pytester: pytest.Pytester) -> None:
    done = run(
        pytester,
        """
import foreblock.dev_chain
import pytest
from hypothesis import given, strategies

@pytest.fixture(scope="module")
def chain():
    return "a chain of the project"

@given(value=strategies.integers(1, 10))
def test_own(chain, value):
    assert chain == "a chain of the project"
""",
    )
    done.assert_outcomes(passed=1)


def test_the_example_of_the_page_passes(pytester: pytest.Pytester, checkout: Path) -> None:
    page = (checkout / "docs" / "in-process.md").read_text("utf-8")
    (program,) = re.findall(r"```python\n(import pytest\n.*?)```", page, re.DOTALL)
    run(pytester, program).assert_outcomes(passed=3)


def test_the_plugin_imports_nothing() -> None:
    """pytest loads it in every run."""
    program = "import sys, foreblock.pytest_plugin; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    ours = {each for each in done.stdout.split() if each.startswith("foreblock")}
    assert ours == {"foreblock", "foreblock.pytest_plugin"}
