"""Any parameters give a result or a documented error."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from foreblock.methods import make_table
from foreblock.settings import Settings
from support.chains.long_chain import EMITTER as ADDRESS
from support.chains.long_chain import HEAD_HASH as HASH
from support.servers.asking import Asker, request
from support.servers.long_work import scheduler

TEXTS = st.sampled_from(
    ["0x", "0x0", "0x1", "0x01", "0xzz", "latest", "pending", "0x36", "0x37", ADDRESS, HASH,
     "0x6000", "0x" + "f" * 64, "0x1" + "0" * 64, "", "5", "0x5b600056", "0x" + "00" * 19 + "04"]
) | st.text(max_size=8)  # fmt: skip
KEYS = st.sampled_from(
    ["from", "to", "gas", "value", "data", "input", "gasPrice", "maxFeePerGas",
     "maxPriorityFeePerGas", "maxFeePerBlobGas", "nonce", "chainId", "accessList",
     "blobVersionedHashes", "authorizationList", "address", "storageKeys", "blockNumber",
     "blockHash", "requireCanonical", "flashblockIndex", "balance", "code", "state", "stateDiff",
     "storage", "movePrecompileToAddress", "number", "time", "timestamp", "baseFeePerGas",
     "withdrawals", ADDRESS, "0x" + "00" * 19 + "04", HASH]
) | st.text(max_size=4)  # fmt: skip
JSON = st.recursive(
    TEXTS
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=12,
)
CALLS = st.fixed_dictionaries(
    {"to": st.just(ADDRESS) | TEXTS, "gas": st.just("0x186a0")},
    optional=dict.fromkeys(
        ["from", "value", "data", "gasPrice", "accessList", "blobVersionedHashes",
         "authorizationList"], JSON
    ),
)  # fmt: skip
METHODS = st.sampled_from(list(make_table(Settings(), scheduler(1)).functions))
CODES = {3, 4444, -32000, -32005, -32601, -32602}


def check(client: Asker, body: bytes) -> None:
    answer: dict[str, Any] = json.loads(client.reply(body).body)
    assert "result" in answer or answer["error"]["code"] in CODES, answer


@given(METHODS, st.lists(JSON, max_size=5))
def test_random_parameters(preconf: Asker, method: str, params: list[Any]) -> None:
    check(preconf, request(method, *params))


@given(st.sampled_from(["eth_call", "eth_estimateGas"]), CALLS | JSON, TEXTS | JSON, JSON, JSON)
def test_random_calls(
    ethereum: Asker, method: str, call: Any, block: Any, overrides: Any, changes: Any  # noqa: ANN401
) -> None:  # fmt: skip
    check(ethereum, request(method, call, block, overrides, changes))
