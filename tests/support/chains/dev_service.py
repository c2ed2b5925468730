"""A dev chain and a service over it in one process: requests change the chain immediately."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foreblock.bus.commands import WOULD_BLOCK, AnyCommand
from foreblock.bus.messages import WaitingTransaction
from foreblock.ledger.reading.view import Ledger
from foreblock.methods.sequencing import Keys
from foreblock.types import Transaction, decode_transactions
from support.chains.dev_chain import ACCOUNTS, DevChain
from support.servers.asking import Asker, asker


class InProcess:
    """The channels to a sequencer in this process: submissions, commands and the pool."""

    def __init__(self, chain: DevChain) -> None:
        self.chain = chain

    async def submit(self, raw: bytes, sender: bytes) -> None:
        (transaction,) = decode_transactions([raw], senders=[sender])
        self.chain.submit(transaction)

    def next_nonce(self, sender: bytes) -> int:
        return self.chain.sequencer.next_nonce(sender)

    def try_submit(self, transaction: Transaction) -> bool:  # noqa: ARG002, as declared
        return False

    async def submit_next(self, transaction: Transaction) -> None:
        self.chain.sequencer.submit(transaction, may_replace=False)
        self.chain.sequencer.run_immediate()

    def try_submit_next(self, transaction: Transaction) -> bool:  # noqa: ARG002, as declared
        return False

    def try_execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, ARG002, its own
        return WOULD_BLOCK

    async def execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        return self.chain.execute(command)


class InProcessPool:
    """The pool of this sequencer."""

    def __init__(self, chain: DevChain) -> None:
        self.chain = chain

    async def find(self, transaction_hash: bytes) -> WaitingTransaction | None:
        waiting = {each.hash: each for each in self.chain.sequencer.builder.pooled()}
        found = waiting.get(transaction_hash)
        if found is None:
            return None
        return WaitingTransaction(found.hash, found.raw, found.sender, can_run=True)

    async def numbers(self) -> tuple[int, int]:
        return len(await self.all()), 0

    async def of_sender(self, sender: bytes) -> Sequence[WaitingTransaction]:
        return [each for each in await self.all() if each.sender == sender]

    async def all(self) -> Sequence[WaitingTransaction]:
        waiting = self.chain.sequencer.builder.pooled()
        return [WaitingTransaction(each.hash, each.raw, each.sender, True) for each in waiting]


@contextmanager
def dev_service(
    folder: Path,
    *,
    sealed: bool = True,
    methods: dict[str, Any] | None = None,
    **options: Any,  # noqa: ANN401, of the chain
) -> Iterator[tuple[DevChain, Asker]]:
    """A chain, mined per transaction by default, and a client of it.

    `sealed` is the view of an ordinary node in the `ethereum` dialect, as at `/eth`. `methods` are
    options of methods.
    """
    chain = DevChain(folder / "store", **({"mining": "automine"} | options))
    ways, pool = InProcess(chain), InProcessPool(chain)
    ledger = Ledger(chain.store, clock=chain.clock)
    served = asker(
        ledger,
        "ethereum" if sealed else "preconf",
        view="sealed" if sealed else "preconfirmed",
        submissions=ways,
        commands=ways,
        pool=pool,
        keys=Keys({each.address: each.secret for each in ACCOUNTS}),
        **(methods or {}),
    )
    with served as client:
        yield chain, client
    chain.kill()
