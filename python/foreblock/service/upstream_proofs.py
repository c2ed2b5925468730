"""Proofs of a followed chain: those of a sealed block come from an upstream, and are checked.

A proof needs nodes of the whole trie, and only a part of it is here. What comes leads from the
state root of the block, or is refused. A block in progress has no root that others know.
"""

from functools import partial
from typing import Final, TypeVar

from msgspec import Raw

from foreblock.ledger.reading.blocks import ReadableBlock, SealedBlock
from foreblock.ledger.reading.given_proof import GivenProof, check_proof
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.block_param import find_block
from foreblock.methods.options import Options
from foreblock.methods.state.accounts import read_account
from foreblock.methods.state.proofs import ProofMethods, render_account, render_proof
from foreblock.methods.table import MethodFunction
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import UNHURRIED, Steps
from foreblock.service.upstream_answer import Find, beside
from foreblock.upstream.asked import AskedProof, BlockAt
from foreblock.upstream.old_blocks import AskUpstream, proof_at

T = TypeVar("T")


class UpstreamProofs:
    """The methods of one network that show proofs."""

    def __init__(self, ask: AskUpstream, scheduler: Scheduler) -> None:
        self._ask: Final = ask
        self._scheduler: Final = scheduler

    def add(self, methods: dict[str, MethodFunction], options: Options) -> None:
        """Let methods of this table answer about sealed blocks."""
        here = ProofMethods(options, self._scheduler)
        prove, show = partial(self._proof, here), partial(self._account, here)
        methods["eth_getProof"] = beside(methods["eth_getProof"], prove)
        methods["eth_getAccount"] = beside(methods["eth_getAccount"], show)

    def _proof(self, here: ProofMethods, view: LedgerView, raw: Raw) -> Find | None:
        who, keys, named = _finished(here.read(raw, UNHURRIED))
        block = find_block(view, named, 2)

        async def find() -> Text:
            slots = [key.slot for key in keys]
            proof = await self._proven(block, who, slots)
            return _finished(render_proof(who, keys, proof, proof.of(slots)))

        return find if isinstance(block, SealedBlock) else None

    def _account(self, here: ProofMethods, view: LedgerView, raw: Raw) -> Find | None:
        who, named = read_account(raw, block_required=here.block_required)
        block = find_block(view, named, 1)

        async def find() -> Text:
            return render_account(await self._proven(block, who, []))

        return find if isinstance(block, SealedBlock) else None

    async def _proven(self, block: ReadableBlock, who: bytes, slots: list[int]) -> GivenProof:
        asked = AskedProof(who, tuple(dict.fromkeys(slots)))
        given = await proof_at(self._ask, asked, BlockAt(block.number, block.hash))
        root = given.account.storage_root
        assert root is not None, "a proof has one"
        return check_proof(given, root, block.header.state_root)


def _finished(steps: Steps[T]) -> T:
    """The outcome of steps that wait for nothing."""
    try:
        while True:
            next(steps)
    except StopIteration as done:
        outcome: T = done.value
        return outcome
