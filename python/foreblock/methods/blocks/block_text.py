"""Blocks as JSON, joined from the texts of their portions and cached.

The transactions of a portion are rendered once and without the hash of their block, so that
they serve every later partial of the block and the sealed one. A block has two forms: with
hashes, and with full transactions. Each is made on first use, in steps, because a portion may
be a whole block and senders may have to be recovered; a long text is left in pieces.

`BlockTexts` caches portions and whole texts. A block of many transactions is rendered once for
all requests that wait for it; each step is cached, so that another request continues where the
first ended.
"""

from binascii import hexlify
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Final, NamedTuple

from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.stored_block import BlockParts, Portion, read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.lru_cache import LruCache, size_of
from foreblock.methods import shapes
from foreblock.scheduling.reply import Text, in_pieces, length_of
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.types import Header

PORTION_BYTES: Final = 1024  # of a portion without transactions: its object and a header
# Where number and hash, the identity of a block, end in its text.
_AFTER_IDENTITY: Final = b',"parentHash":'


class PortionText:
    """Hashes and fragments of some consecutive transactions."""

    def __init__(self, portion: Portion, first: int, header: Header) -> None:
        """`first` is the place of the first transaction, `header` that of its block."""
        self.count: Final = len(portion)
        self.encoded_bytes: Final = portion.items.encoded_size  # of the transactions in a block
        self.hashes: Final[list[bytes]] = []
        self.fragments: Final[list[bytes]] = []
        self._hashed = 0  # transactions
        self._first: Final = first
        self._header: Final = header
        self._portion: Portion | None = portion if self.count else None
        self.size = PORTION_BYTES + portion.stored_bytes  # about how many bytes it uses

    @property
    def is_hashed(self) -> bool:
        return self._hashed == self.count

    @property
    def is_whole(self) -> bool:
        """Return whether all transactions are rendered."""
        return len(self.fragments) == self.count

    def render_hashes(self) -> None:
        assert self._portion is not None, "there is something to render"
        stop = min(self._hashed + THRESHOLDS.rendered_hashes, self.count)
        text = self._portion.items.hashes(self._hashed, stop)
        self.hashes.append(text)
        self._hashed = stop
        self.size += len(text)
        self._free_rendered()

    def render_fragments(self) -> None:
        """Render the next transactions."""
        portion = self._portion
        assert portion is not None, "there is something to render"
        start = len(self.fragments)
        if portion.senders is None:
            stop = start + THRESHOLDS.recovered_senders
        else:
            stop = start + THRESHOLDS.rendered_transactions
        texts = portion.fragments(start, stop, self._first, self._header)
        self.fragments.extend(texts)
        self.size += sum(map(len, texts))
        self._free_rendered()

    def _free_rendered(self) -> None:
        """Free the portion once nothing is left to render."""
        if self._portion is not None and self.is_hashed and self.is_whole:
            self.size -= self._portion.stored_bytes
            self._portion = None


class BlockText:
    """Both forms of a block, each rendered on first use."""

    def __init__(self, stored: BlockParts, portions: Sequence[PortionText]) -> None:
        encoded_bytes = sum(portion.encoded_bytes for portion in portions)
        self._hash: Final = stored.header.hash
        self._head: Final = _head(stored, stored.size(encoded_bytes))
        self.full: Text | None = None
        self.hashes: Text | None = None
        self.size = len(self._head)  # about how many bytes it uses

    def join(self, portions: Sequence[PortionText], *, full: bool) -> Steps[Text]:
        """One form, from portions that are rendered."""
        between = b'},{"blockHash":"0x%b",' % hexlify(self._hash) if full else b","
        before, end = (between[2:], b"}]}") if full else (b"", b"]}")
        pieces = [b'{%b,"transactions":[' % self._head]
        some = THRESHOLDS.joined_transactions
        for portion in portions:
            texts = portion.fragments if full else portion.hashes
            for start in range(0, len(texts), some):
                pieces.append(before + between.join(texts[start : start + some]))
                before = between
                yield None
        pieces.append(end if len(pieces) > 1 else b"]}")
        text = in_pieces(pieces)
        if full:
            self.full = text
        else:
            self.hashes = text
        self.size += length_of(text)
        return text


def without_identity(text: Text) -> Text:
    """A pending block without number and hash, as some clients expect it."""
    first = text if isinstance(text, bytes) else text[0]
    first = b'{"number":null,"hash":null' + first[first.index(_AFTER_IDENTITY) :]
    return first if isinstance(text, bytes) else [first, *text[1:]]


def _head(stored: BlockParts, size: int) -> bytes:
    """Everything before the transactions."""
    parts = [
        stored.header.members(size),
        b'"uncles":' + shapes.array([shapes.write_data(uncle.hash) for uncle in stored.uncles]),
    ]
    if stored.withdrawals is not None:
        withdrawals = list(map(shapes.withdrawal, stored.withdrawals))
        parts.append(b'"withdrawals":' + shapes.array(withdrawals))
    return b",".join(parts)


class KeptBytes(NamedTuple):
    """The sizes of the caches of rendered texts."""

    blocks: int = 64 << 20
    flashblocks: int = 32 << 20


KEPT: Final = KeptBytes()


class BlockTexts:
    """The texts of one service."""

    def __init__(self, scheduler: Scheduler, kept: KeptBytes | None = None) -> None:
        kept = kept or KEPT
        self._blocks: Final = LruCache[bytes | int, BlockText](kept.blocks, size_of)
        self._portions: Final = LruCache[bytes | int, PortionText](kept.flashblocks, size_of)
        self._scheduler: Final = scheduler

    def show(
        self, view: LedgerView, block: ReadableBlock, *, full: bool
    ) -> bytes | Awaitable[Text]:
        """A block of a view, with full transactions or with their hashes."""
        found = self._kept(block, full=full)
        if found is not None:
            return self._scheduler.send_text(found)
        begin = partial(self.render, view, block, full=full)
        return self._scheduler.coalesce((self, block.key, full), begin)

    def _kept(self, block: ReadableBlock, *, full: bool) -> Text | None:
        text = self._blocks.get(block.key)
        return None if text is None else text.full if full else text.hashes

    def render(self, view: LedgerView, block: ReadableBlock, *, full: bool) -> Steps[Text]:
        """Render the missing parts; other requests have their turn in between."""
        found = self._kept(block, full=full)  # another one may have rendered it meanwhile
        if found is not None:
            return found
        stored = read_stored(view, block)
        portions = yield from self._render_portions(block, stored, full=full)
        text = self._blocks.get(block.key) or BlockText(stored, portions)
        found = yield from text.join(portions, full=full)
        self._blocks.keep(block.key, text)
        return found

    def _render_portions(
        self, block: ReadableBlock, stored: BlockParts, *, full: bool
    ) -> Steps[list[PortionText]]:
        portions: list[PortionText] = []
        first = 0
        for part in stored.parts:
            # A whole body is named by its block, and would be rendered again after a reorg.
            key = block.key if part.number is None else part.number
            text = self._portions.get(key)
            if text is None:
                text = PortionText(part.read(), first, stored.header)
                self._portions.keep(key, text)
                yield None
            while not (text.is_whole if full else text.is_hashed):
                if full:
                    text.render_fragments()
                else:
                    text.render_hashes()
                self._portions.keep(key, text)
                yield None
            first += text.count
            portions.append(text)
        return portions
