"""Dev chains under all methods, transactions, faults and kills together.

Each example is a list of steps (`support.chains.dev_trial`), after each of which the chain is
compared with a plain model.

FOREBLOCK_DEV_EXAMPLES sets the number of examples, FOREBLOCK_DEV_STEPS the number of steps.
"""

import os
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreblock.methods import make_families
from foreblock.methods.sequencing import Sequencing
from foreblock.settings import Settings
from support.chains.dev_service import InProcess
from support.chains.dev_trial import STEPS, trial
from support.servers.long_work import scheduler

EXAMPLES = int(os.environ.get("FOREBLOCK_DEV_EXAMPLES", "10"))
STEPS_OF_A_LIFE = int(os.environ.get("FOREBLOCK_DEV_STEPS", "60"))
OFTEN = ("send_raw", "send", "impersonated", "balance", "snapshot", "revert", "tail", "kill")
RARELY = ("reset",)
EDITS = ("balance", "balances", "add", "nonce", "code", "slot", "load")
# Methods without an effect that is checked here, or with blocks that no other node accepts.
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


@pytest.mark.parametrize(
    ("rules", "left_out"),
    [
        pytest.param("optimism", RARELY, id="edited-optimism"),
        pytest.param("ethereum", RARELY + EDITS, id="honest-ethereum"),
        pytest.param("ethereum", RARELY, id="edited-ethereum", marks=pytest.mark.heavy),
        pytest.param("optimism", RARELY + EDITS, id="honest-optimism", marks=pytest.mark.heavy),
    ],
)
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
    families = [make_families(Settings(), scheduler(1), each) for each in (None, sequencing)]
    some, more = ({each.name for family in all_ for each in family.methods} for all_ in families)
    with trial("optimism") as found:
        found.do("evm_mine")
        for name, arguments in STEPS.items():
            for place in range(3 if name == "drop" else 2 if arguments else 1):
                found.do(name, *(each[place] for each in arguments))
    assert more - some == (found.used | ELSEWHERE) & more - some
