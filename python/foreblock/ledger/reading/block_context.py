"""The block that a call runs in, as its code sees it: a real block, or an overridden one.

A call runs *in* the block it names, after its transactions. For a call that pays nothing for
gas the base fee reads 0, and likewise for blobs, so that it never pays less than the block
asks for (as in geth).
"""

from functools import cached_property
from typing import Final

from foreblock._engine import Env, Header, Opening
from foreblock.ledger.rules.execution import environment
from foreblock.ledger.rules.fees import blob_base_fee
from foreblock.ledger.rules.forks import Rules
from foreblock.ledger.rules.profile import ChainProfile


class BlockContext:
    """Header and rules of a block that calls run in, and the environments of these calls."""

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
        # None before London.
        self.base_fee: Final = header.base_fee_per_gas
        self._blob_fee: Final = blob_fee
        self._priced: Env | None = None
        # The prefix of simulations of this block, once one has made it.
        self.opening: Opening | None = None

    @cached_property
    def blob_fee(self) -> int:
        """The price of a unit of blob gas."""
        if self._blob_fee is not None:
            return self._blob_fee
        blobs = self.profile.blob_parameters(self.header.timestamp)
        return 0 if blobs is None else blob_base_fee(self.header.excess_blob_gas or 0, blobs)

    @cached_property
    def unpriced(self) -> Env:
        """The environment of a call that pays nothing and has no blobs: nearly every call."""
        return self.environment(free_gas=True, free_blobs=False)

    @property
    def priced(self) -> Env:
        """The environment of a call that pays the fees of the block."""
        if self._priced is None:
            self._priced = self.environment(free_gas=False, free_blobs=False)
        return self._priced

    def environment(self, *, free_gas: bool, free_blobs: bool) -> Env:
        """The environment of a call."""
        header = self.header
        if free_gas and header.base_fee_per_gas is not None:
            header = header.replace(base_fee_per_gas=0)
        blob_fee = 0 if free_blobs else self._blob_fee
        return environment(header, self.rules, self.profile, blob_fee)
