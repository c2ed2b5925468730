"""Transactions and logs of blocks."""

from typing import TypeAlias

from hypothesis import strategies as st

from foreblock._engine import Message, Transaction, deposit_transaction, sign_transaction
from support.chains.writing import KEYS, SENDERS

Log: TypeAlias = tuple[bytes, tuple[bytes, ...], bytes]

logs: st.SearchStrategy[Log] = st.tuples(
    st.binary(min_size=20, max_size=20),
    st.lists(st.binary(min_size=32, max_size=32), max_size=4).map(tuple),
    st.binary(max_size=80),
)


@st.composite
def transactions(draw: st.DrawFn) -> Transaction:
    """Any transaction of a block, except those with blobs."""
    kind = draw(st.sampled_from([0, 1, 2, 4, 0x7E]))
    fees = st.integers(0, 2**100)
    to = draw(st.binary(min_size=20, max_size=20))
    data, value = draw(st.binary(max_size=50)), draw(st.integers(0, 2**256 - 1))
    if kind == 0x7E:
        return deposit_transaction(
            source_hash=draw(st.binary(min_size=32, max_size=32)),
            sender=SENDERS[0],
            to=draw(st.sampled_from([to, None])),
            mint=draw(st.integers(0, 2**128 - 1)),
            value=value,
            gas_limit=draw(st.integers(0, 2**64 - 1)),
            input=data,
        )
    fields: dict[str, object] = {"gas_price": draw(fees)}
    if kind >= 2:
        low, high = sorted((draw(fees), draw(fees)))
        fields = {"max_fee_per_gas": high, "max_priority_fee_per_gas": low}
    if kind:
        keys = draw(st.lists(st.binary(min_size=32, max_size=32), max_size=3))
        fields["access_list"] = [(to, keys)]
    message = Message(
        sender=SENDERS[0],
        to=draw(st.sampled_from([to, None])) if kind < 3 else to,
        value=value,
        data=data,
        gas=draw(st.integers(0, 2**63)),
        **fields,  # type: ignore[arg-type]
    )
    return sign_transaction(message, kind, draw(st.integers(1, 2**32)), 5, KEYS[0])
