"""The history of a chain at every flashblock, computed from its feed alone.

Every announced value is computed again from the raw transactions: roots, bloom, gas, data
footprint, hash. The state root of a sealed block, which no message contains, is checked by the
responses: a sealed block must have the hash that the next block calls its parent.

The feed is recorded from some index 0 on, before which the chain only had attributes deposits.
Disagreements are collected, and the replay continues with the announced values.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from checker.chain import Chain
from checker.contradiction import Contradiction, Kind
from checker.fees import next_base_fee
from checker.header import header_hash
from checker.job import Job, Learned
from checker.messages import (
    Message,
    announced_fields,
    announced_header,
    read_message,
    unhex,
)
from checker.ordered_trie import OrderedTrie
from checker.place import Place, Sealed
from checker.state import State


class Truth:
    """The chain according to its feed."""

    def __init__(self, chain: Chain, senders: Mapping[bytes, bytes]) -> None:
        """`senders` has the signer of each transaction, by hash."""
        self.chain = chain
        self.places: list[Place] = []
        self.by_place: dict[tuple[int, int], list[Place]] = defaultdict(list)
        self.by_hash: dict[bytes, list[Place]] = defaultdict(list)
        # The flashblocks with a transaction, and its position in their blocks.
        self.by_transaction: dict[bytes, list[tuple[Place, int]]] = defaultdict(list)
        self.sealed: dict[bytes, Sealed] = {}
        # Flashblocks of a feed that the chain never had, by number, index and hash: their
        # transactions.
        self.lies: dict[tuple[int, int, bytes], list[bytes]] = {}
        self.contradictions: list[Contradiction] = []
        self._learned = Learned(chain, senders)
        self._job: Job | None = None

    def read(self, lines: Iterable[tuple[int, str]]) -> None:
        """Replay the record: the time and text of each message."""
        for received_ns, text in lines:
            message = read_message(text)
            job = self._job_of(message)
            if job is not None:
                self._extend(job, message, received_ns)

    def read_faulty(self, texts: Iterable[str]) -> None:
        """Process messages of a feed with faults about the replayed chain."""
        for text in texts:
            message = read_message(text)
            known = {place.hash for place in self.by_place.get((message.number, message.index), ())}
            hashes = self._hashes(message)
            if not known.intersection(hashes):
                for each in hashes:
                    self.lies[message.number, message.index, each] = message.raws

    def _hashes(self, message: Message) -> list[bytes]:
        """The hash announced by a message, or those of the blocks that it may extend."""
        if any(message.hash):
            return [message.hash]
        before = self.by_place.get((message.number, message.index - 1), [])
        found = [(each.header, each.raws) for each in before]
        if message.base is not None:
            found = [(announced_header(message.base, message.diff, bytes(32)), [])]
        hashes = []
        for header, raws in found:
            trie = OrderedTrie()
            trie.extend([*raws, *message.raws])
            fields = {
                **header,
                **announced_fields(message.diff),
                "transactionsRoot": trie.root(),
                "withdrawalsRoot": self.places[0].header["withdrawalsRoot"],  # no load changes it
            }
            hashes.append(header_hash(fields))
        return hashes

    # --- The block of a message ----------------------------------------------------------

    def _job_of(self, message: Message) -> Job | None:
        job = self._job
        if message.index == 0 and message.base is not None:
            self._job = self._begin(message, message.base)
        elif job is None:
            return None  # recorded in the middle of a block
        elif (message.payload_id, message.index) != (job.payload_id, len(job.places)):
            self._report(Kind.ORDER, message, f"{job.number}.{len(job.places)} was next")
            return None
        return self._job

    def _begin(self, message: Message, base: dict[str, str]) -> Job:
        parent_hash = unhex(base["parent_hash"])
        parent = self.sealed.get(parent_hash) or self._seal(message, parent_hash)
        if parent.number + 1 != message.number:
            self._report(Kind.LINK, message, f"its parent is block {parent.number}")
        if parent.place is not None:
            self._check_base(message, base, parent.place)
        return Job(message, base, parent, self._learned)

    def _seal(self, message: Message, parent_hash: bytes) -> Sealed:
        """Seal the previous block with the hash that this message calls its parent."""
        job = self._job
        if job is not None and job.places:
            said = message.previous
            place = next((p for p in job.places if (p.number, p.index) == said), job.places[-1])
            sealed = Sealed(job.number, parent_hash, place, place.state)
        else:
            sealed = Sealed(message.number - 1, parent_hash, None, _start(self.chain))
        self.sealed[parent_hash] = sealed
        return sealed

    def _check_base(self, message: Message, base: dict[str, str], parent: Place) -> None:
        time, fee = int(base["timestamp"], 16), int(base["base_fee_per_gas"], 16)
        before = parent.number_in("timestamp")
        if time <= before or (time - before) % self.chain.block_time:
            self._report(Kind.LINK, message, f"its time is {time}", before=before)
        extra_data = parent.header["extraData"]
        assert isinstance(extra_data, bytes)
        expected = next_base_fee(
            parent.number_in("baseFeePerGas"),
            parent.number_in("gasLimit"),
            parent.number_in("gasUsed"),
            parent.number_in("blobGasUsed"),
            extra_data,
        )
        if fee != expected:
            self._report(Kind.LINK, message, f"its base fee is {fee}", expected=expected)

    # --- The contents of a message -------------------------------------------------------

    def _extend(self, job: Job, message: Message, received_ns: int) -> None:
        try:
            job.take(message)
        except ValueError as why:
            self._report(Kind.LOAD, message, str(why))
        place = job.place(message, len(self.places), received_ns)
        self._check(job, message, place)
        if place.index == 0:
            self._drop_beside(place)
        before = job.places[-1].count if job.places else 0
        for at in range(before, place.count):
            hash = place.transactions[at].transaction.hash  # noqa: A001, its name
            self.by_transaction[hash].append((place, at))
        job.places.append(place)
        self.places.append(place)
        self.by_place[place.number, place.index].append(place)
        self.by_hash[place.hash].append(place)

    def _check(self, job: Job, message: Message, place: Place) -> None:
        for name, expected in job.expected_header(place.header).items():
            found = place.header[name]
            if found != expected:
                what = f"{name} is {_text(found)}"
                self._report(Kind.HEADER, message, what, expected=_text(expected))
        found = header_hash(place.header)
        if found != place.hash:
            self._report(Kind.HASH, message, _text(place.hash), expected=_text(found))

    def _drop_beside(self, first: Place) -> None:
        """A first index ends other blocks of its height and above its parent."""
        for other in reversed(self.places):
            if other is first.parent.place or other.number < first.number - 1:
                break
            if other.dropped_by is None:
                other.dropped_by = first

    def _report(self, kind: Kind, message: Message, what: str, **evidence: object) -> None:
        where = f"{message.number}.{message.index}"
        self.contradictions.append(Contradiction(kind, f"flashblock {where}: {what}", evidence))


def _start(chain: Chain) -> State:
    """The accounts before the load begins."""
    balances = {("balance", owner): amount for owner, amount in chain.balances.items()}
    tokens = {("token", owner): amount for owner, amount in chain.tokens.items()}
    return State({**balances, **tokens})  # type: ignore[dict-item]  # the keys are literals


def _text(value: bytes | int) -> str:
    return str(value) if isinstance(value, int) else f"0x{value.hex()}"
