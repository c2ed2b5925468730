"""Any input gets a well-formed response, and the next request is answered."""

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from foreblock.scheduling.reply import Reply
from support.servers.asking import ANYBODY
from support.servers.toys import Toys, call

TOYS = Toys()
SEEDS = [
    call("echo", '["0x1",{"a":[1,2.5,null]}]', '"id"'),
    call("fail", '["no"]', "1e400"),
    call("later"),
    b"[%b,%b]" % (call("echo"), call("fail_later", '["no"]')),
    b'{"jsonrpc":"2.0","method":"echo"}',
]


def check(body: bytes) -> None:
    async def answer() -> Reply:
        reply = TOYS.dispatcher.answer(body, ANYBODY)
        return reply if isinstance(reply, Reply) else await reply

    reply = asyncio.run(answer())
    if reply.body:
        parsed = json.loads(reply.body)
        for each in parsed if isinstance(parsed, list) else [parsed]:
            check_member(each)
    assert all(context.closed == 1 for context in TOYS.contexts)
    TOYS.contexts.clear()
    TOYS.ran.clear()


def check_member(answer: dict[str, Any]) -> None:
    assert answer["jsonrpc"] == "2.0"
    assert not isinstance(answer["id"], dict | list)
    if "error" in answer:
        assert set(answer) == {"jsonrpc", "id", "error"}
        assert isinstance(answer["error"]["code"], int)
        assert isinstance(answer["error"]["message"], str)  # toys echo their input
    else:
        assert set(answer) == {"jsonrpc", "id", "result"}


@given(st.binary(max_size=300))
def test_random_bytes(body: bytes) -> None:
    check(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(["jsonrpc", "id", "method", "params"]) | st.text(), inner, max_size=5
        )
    ),
)
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": JSON,
        "method": st.sampled_from(["echo", "fail", "later", "what", ""]) | JSON,
        "params": JSON,
    },
)


@given(REQUESTS | st.lists(REQUESTS, max_size=4) | JSON)
def test_random_json(value: object) -> None:
    check(json.dumps(value).encode())


@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 200), st.binary(max_size=3), st.integers(0, 3)), max_size=4),
)
def test_mutated_requests(seed: bytes, changes: list[tuple[int, bytes, int]]) -> None:
    body = seed
    for place, inserted, removed in changes:
        at = place % (len(body) + 1)
        body = body[:at] + inserted + body[at + removed :]
    check(body)
