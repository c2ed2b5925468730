"""The rows of templates: how calls of a kind find the slots that they read.

    rows             key                                       value
    template         M ‖ code hash (32) ‖ selector (4)         its rules, MessagePack

No answer depends on these rows: the writer puts them now and then, without a number, and whoever
predicts what calls read begins with them. They are right at every anchor.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from foreblock._engine import Store, View
from foreblock.errors import StoreDamaged
from foreblock.ledger.rules.call_templates import MOST_KINDS, WORD, SlotRule
from foreblock.ledger.rules.call_words import SELECTOR, Kind

TEMPLATES: Final = b"M"
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[SlotRule]).decode


def put_templates(
    store: Store, put: Mapping[Kind, Iterable[SlotRule]], gone: Sequence[Kind]
) -> None:
    """Keep these templates, and those no longer."""
    rows = [(_key(kind), _encode(list(rules))) for kind, rules in put.items()]
    if rows or gone:
        store.put_rows(rows, [_key(kind) for kind in gone])


def read_templates(view: View) -> dict[Kind, list[SlotRule]]:
    """All templates. Raises `StoreDamaged`."""
    return dict(map(_decoded, view.rows(TEMPLATES, 2 * MOST_KINDS)))


def _key(kind: Kind) -> bytes:
    return TEMPLATES + kind[0] + kind[1]


def _decoded(row: tuple[bytes, bytes]) -> tuple[Kind, list[SlotRule]]:
    key, value = row
    code, selector = key[len(TEMPLATES) :][:WORD], key[len(TEMPLATES) + WORD :]
    try:
        if len(selector) == SELECTOR:
            return (code, selector), _decode(value)
    except msgspec.MsgspecError:
        pass
    raise StoreDamaged(f"the row of a template: {key.hex()}")
