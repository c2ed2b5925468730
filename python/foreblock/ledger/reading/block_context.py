"""The block that a call runs in, as its code sees it: the block itself, or one overridden.

A call runs *in* the block it names, after its transactions. Where it pays nothing for
gas, the base fee reads 0, and likewise for blobs, so that what it pays is never below
what the block asks for (as in geth).
"""

from functools import cached_property
from typing import Final

from foreblock._engine import Env, Header, Opening
from foreblock.ledger.rules.execution import environment
from foreblock.ledger.rules.fees import blob_base_fee
from foreblock.ledger.rules.forks import Rules
from foreblock.ledger.rules.profile import ChainProfile


class Surroundings:
    """Header and rules of a block that calls run in, and the environments they make."""

    def __init__(
        self,
        header: Header,
        rules: Rules,
        profile: ChainProfile,
        blob_fee: int | None = None,
    ) -> None:
        self.header: Final = header
        self.rules: Final = rules
        self.profile: Final = profile
        # What a unit of gas costs at least; none before London.
        self.base_fee: Final = header.base_fee_per_gas
        self._blob_fee: Final = blob_fee
        self._priced: Env | None = None
        # What usual simulations of it begin with, from the first of them on.
        self.opening: Opening | None = None

    @cached_property
    def blob_fee(self) -> int:
        """What a unit of blob gas costs."""
        if self._blob_fee is not None:
            return self._blob_fee
        blobs = self.profile.blob_parameters(self.header.timestamp)
        return 0 if blobs is None else blob_base_fee(self.header.excess_blob_gas or 0, blobs)

    @cached_property
    def unpriced(self) -> Env:
        """What a call sees that pays nothing and has no blobs: nearly every call."""
        return self.environment(free_gas=True, free_blobs=False)

    @property
    def priced(self) -> Env:
        """What a call sees that pays what the block asks for."""
        if self._priced is None:
            self._priced = self.environment(free_gas=False, free_blobs=False)
        return self._priced

    def environment(self, *, free_gas: bool, free_blobs: bool) -> Env:
        """What a call sees."""
        header = self.header
        if free_gas and header.base_fee_per_gas is not None:
            header = header.replace(base_fee_per_gas=0)
        blob_fee = 0 if free_blobs else self._blob_fee
        return environment(header, self.rules, self.profile, blob_fee)
