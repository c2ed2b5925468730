"""A fetcher that answers from a chain in this process, with lies on request."""

from collections.abc import Sequence

from foreblock.follow.fetch_result import (
    EMPTY_CODE,
    ClaimedAccount,
    ClaimedHeader,
    ClaimedProof,
    ClaimedSlot,
    FetchResult,
)
from foreblock.follow.requests import BlockAt
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.upstream.budget import Purpose
from support.chains.following import Truth

SOURCE = "u"


def with_flipped_bit(nodes: Sequence[bytes], at: int, bit: int) -> list[bytes]:
    """Return the nodes of a proof with one bit turned; both numbers wrap around."""
    at, changed = at % len(nodes), list(nodes)
    node = bytearray(changed[at])
    bit %= 8 * len(node)
    node[bit // 8] ^= 1 << bit % 8
    changed[at] = bytes(node)
    return changed


class FakeFetcher:
    """Answers from a chain, at a chosen block."""

    def __init__(self, truth: Truth, at: int) -> None:
        self.truth = truth
        self.at = at
        self.places: list[Sequence[BlockAt]] = []
        self.lies: list[str] = []
        self.turned: tuple[int, int] | None = None  # a node of each proof, and the bit to flip
        self.proves = True
        self.another: dict[tuple[bytes, int], int] = {}  # false values of slots
        self.forged: list[bytes] = []  # nodes that replace those of slots
        self.is_tip_only = False

    async def fetch(
        self, wanted: StateKeys, places: Sequence[BlockAt], _: Purpose, __: float, ___: int = 0
    ) -> FetchResult:
        found = FetchResult()
        self.places.append(places)
        with self.truth.store.view() as view:
            state = view.state(self.at)
            for address in wanted.accounts | wanted.slots.keys():
                slots = sorted(wanted.slots.get(address, ()))
                proof = state.prove(address, slots)
                account = proof.account
                said = ClaimedAccount(0, 0, EMPTY_CODE, None)
                if account is not None:
                    said = ClaimedAccount(
                        account.nonce, account.balance, account.code_hash, proof.storage_root
                    )
                nodes = list(proof.account_nodes)
                if self.turned is not None:
                    nodes = with_flipped_bit(nodes, *self.turned)
                values = [
                    ClaimedSlot(
                        slot, self.another.get((address, slot), value), tuple(self.forged or some)
                    )
                    for slot, (value, some) in zip(
                        slots, map(proof.slot, range(len(slots))), strict=True
                    )
                ]
                if self.proves:
                    found.put_proof(
                        ClaimedProof(address, said, tuple(nodes), tuple(values), SOURCE)
                    )
                else:
                    found.accounts[address] = said
                    found.put_slots(address, [(each.slot, each.value) for each in values])
                    found.said_by[address] = SOURCE
            for address in wanted.codes_of:
                found.put_code(address, state.code(address))
        for number in wanted.blocks:
            header = self.truth.headers[number]
            found.headers[number] = ClaimedHeader(
                number, header.hash, header.parent_hash, header.state_root
            )
        return found

    def proves_tip(self, source: str) -> bool:
        assert source == SOURCE
        return self.is_tip_only

    def report_bad_data(self, source: str, why: str) -> None:
        """Record the upstream that is reported for bad data."""
        assert source == SOURCE
        self.lies.append(why)
