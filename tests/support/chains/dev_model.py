"""A plain model of a dev chain: which transactions are in which block, which wait.

It knows nothing of flashblocks, jobs or rows. A transaction moves one wei from an account to
another that nobody else pays, so nonces and balances follow from the list of transactions.
What seals a block is not modelled: `seal` takes what the chain has sealed, and refuses what
cannot be.
"""

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

Sent = tuple[int, int, bytes]  # the account, its nonce, the raw transaction


@dataclass
class DevModel:
    """The transactions of a chain."""

    blocks: list[list[Sent]] = field(default_factory=list)  # sealed, block 1 first
    open: list[Sent] = field(default_factory=list)  # in the block in progress
    waiting: dict[tuple[int, int], Sent] = field(default_factory=dict)  # by account and nonce

    def copy(self) -> "DevModel":
        return deepcopy(self)

    @property
    def height(self) -> int:
        return len(self.blocks)

    def nonces(self, height: int | None = None) -> Counter[int]:
        """How many transactions of each account there are up to a block, or in all that ran."""
        some = self.blocks if height is None else self.blocks[:height]
        counted = Counter(who for block in some for who, _, _ in block)
        if height is None:
            counted.update(who for who, _, _ in self.open)
        return counted

    def next_nonce(self, who: int) -> int:
        """The nonce after all that ran or can run."""
        nonce = self.nonces()[who]
        while (who, nonce) in self.waiting:
            nonce += 1
        return nonce

    def send(self, sent: Sent) -> None:
        self.waiting[sent[:2]] = sent

    def run(self) -> None:
        """Everything that can run is in the block in progress."""
        nonces, found = self.nonces(), True
        while found:
            found = False
            for key in sorted(self.waiting):
                who, nonce = key
                if nonce == nonces[who]:
                    self.open.append(self.waiting.pop(key))
                    nonces[who] += 1
                    found = True

    def wait_again(self, some: Sequence[Sent]) -> None:
        for each in some:
            self.waiting[each[:2]] = each

    def go_back(self, height: int, *, lost: bool) -> None:
        """Only blocks up to this one are left; what was in others waits again or is lost."""
        given_up = [each for block in self.blocks[height:] for each in block]
        del self.blocks[height:]
        self.wait_again(self.open)
        self.open = []
        if not lost:
            self.wait_again(given_up)
        self.run()

    def seal(self, blocks: Sequence[Sequence[bytes]]) -> None:
        """These blocks were sealed, from transactions that ran."""
        for raws in blocks:
            ran = {each[2]: each for each in self.open}
            assert set(raws) <= set(ran), "a block has what ran, and nothing else"
            nonces = self.nonces(self.height)
            for raw in raws:
                who, nonce, _ = ran[raw]
                assert nonce == nonces[who], "in the order of the nonces"
                nonces[who] += 1
            self.blocks.append([ran[raw] for raw in raws])
            self.open = [each for each in self.open if each[2] not in set(raws)]
