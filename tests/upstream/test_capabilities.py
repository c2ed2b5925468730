"""Probes of nodes with and without each feature, over HTTP."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from foreblock.clock import SystemClock
from foreblock.errors import RefusedAnswer
from foreblock.follow import state_upstream
from foreblock.follow.capabilities import Asking, Capabilities, ProbeResult
from foreblock.follow.requests import BlockForm
from foreblock.follow.state_plan import RequestLimits
from foreblock.follow.state_upstream import StateUpstream
from foreblock.upstream.budget import UnitBudget
from support.each_case import each_case
from support.servers.toy_endpoint import ToyResponse
from support.upstreams.toy_node import TIP, ToyNode, toy_node

RICH = 1_000_000.0


def probe(node: ToyNode, *, whole: bool = True) -> Capabilities:
    async def ask() -> Capabilities:
        upstream = StateUpstream(node.url, SystemClock(), UnitBudget(RICH))
        try:
            return await upstream.probe(whole=whole)
        finally:
            upstream.close()

    with toy_node(node):
        return asyncio.run(ask())


def test_a_node_that_can_do_everything() -> None:
    node = ToyNode()
    found = probe(node)
    assert found.chain_id == 8453
    assert found.client == "ToyNode/v1"
    assert found.latest.number == TIP
    assert found.forms == tuple(BlockForm)
    assert found.overrides
    assert found.storage_values
    assert found.proof_depth == 16, "the chain has 102 blocks"
    assert found.batch == 100
    assert not found.witness
    assert list(found.reasons) == ["debug_executionWitness"]
    assert found.limits() == RequestLimits(form=BlockForm.CANONICAL, batch=100)
    assert node.bodies < 30, "a handful"


@each_case(
    ("node", "ability", "value", "reason"),
    [
        (ToyNode(overrides=False), "overrides", False, "overrides"),
        (ToyNode(values=False), "storage_values", False, "eth_getStorageValues"),
        (ToyNode(proofs=None), "proof_depth", None, "eth_getProof"),
        (ToyNode(proofs=0), "proof_depth", 0, "eth_getProof 2 back"),
        (ToyNode(proofs=5), "proof_depth", 2, "eth_getProof 16 back"),
        (ToyNode(batches=10), "batch", 10, "batch of 50"),
        (ToyNode(batches=1), "batch", 1, "batch of 2"),
        (ToyNode(forms=frozenset({"number"})), "forms", (BlockForm.NUMBER,), "canonical hash"),
        (ToyNode(forms=frozenset({"bare"})), "forms", (BlockForm.BARE,), "number"),
        (ToyNode(forms=frozenset()), "forms", (), "bare hash"),
    ],
)
def test_a_node_that_lacks_something(
    node: ToyNode, ability: str, value: object, reason: str
) -> None:
    found = probe(node)
    assert getattr(found, ability) == value
    assert found.reasons[reason]


def test_a_node_that_has_only_its_latest_block_may_prove_it() -> None:
    def only_the_tip(block: Any) -> Any:  # noqa: ANN401, JSON
        return block if int(block["number"], 16) == TIP else None

    found = probe(ToyNode(lies={"eth_getBlockByNumber": only_the_tip}), whole=False)
    assert found.proof_depth is not None


@pytest.mark.parametrize("node", [ToyNode(), ToyNode(proofs=0, forms=frozenset({"number"}))])
def test_what_a_plan_needs_takes_fewer_requests(node: ToyNode) -> None:
    short = probe(node, whole=False)
    asked = node.bodies
    assert short.limits() == probe(node).limits()
    assert asked < 24
    assert not short.witness


@pytest.mark.parametrize(
    ("node", "rounds"), [(ToyNode(), 3), (ToyNode(forms=frozenset({"number"})), 7)]
)
def test_an_ordinary_endpoint_is_known_after_three_round_trips(node: ToyNode, rounds: int) -> None:
    class Counted(StateUpstream):
        rounds = 0

        async def probe_all(self, asking: Sequence[Asking]) -> list[ProbeResult]:
            self.rounds += 1
            return await super().probe_all(asking)

    async def ask() -> int:
        upstream = Counted(node.url, SystemClock(), UnitBudget(RICH))
        try:
            await upstream.probe()
        finally:
            upstream.close()
        return upstream.rounds

    with toy_node(node):
        assert asyncio.run(ask()) == rounds


def test_ways_follow_from_abilities() -> None:
    assert probe(ToyNode(proofs=0)).limits().tip_proofs
    assert not probe(ToyNode(proofs=2)).limits().tip_proofs
    assert not probe(ToyNode(proofs=None)).can_prove
    assert not probe(ToyNode(forms=frozenset())).can_serve


def test_a_hash_that_is_ignored_is_not_taken() -> None:
    """A node that responds for the latest block, regardless of the requested hash."""

    class Careless(ToyNode):
        def number(self, block: Any) -> int:  # noqa: ANN401, JSON
            return self.tip if isinstance(block, dict) else super().number(block)

    found = probe(Careless())
    assert found.forms == (BlockForm.BARE, BlockForm.NUMBER)
    assert "does not exist" in found.reasons["hash"]


def test_overrides_that_have_no_effect_are_none() -> None:
    word = "0x" + "00" * 32
    found = probe(ToyNode(lies={"eth_call": lambda _: word}))
    assert not found.overrides
    assert found.reasons["overrides"] == "they have no effect"


@each_case(
    "said",
    [
        ToyResponse(status=500),
        ToyResponse(body=b"<html>"),
        ToyResponse(cut=5),
        ToyResponse(status=401),
        ToyResponse(body=b"{}"),
    ],
    ids=str,
)
def test_what_is_no_endpoint_has_no_abilities(
    said: ToyResponse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_upstream, "PROBE_TRIES", 1)
    with pytest.raises(RefusedAnswer):
        probe(ToyNode(weather=lambda *_: said))


def test_nobody_there() -> None:
    async def ask() -> None:
        upstream = StateUpstream("http://127.0.0.1:9", SystemClock())
        try:
            await upstream.probe()
        finally:
            upstream.close()

    with pytest.raises(RefusedAnswer, match="unreachable: connection refused"):
        asyncio.run(ask())
