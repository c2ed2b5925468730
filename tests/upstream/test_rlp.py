from hypothesis import given
from hypothesis import strategies as st

from foreblock.upstream.rlp import Item, encode
from support.payloads import rlp

LEAVES = st.binary(max_size=300) | st.integers(0, 2**256)
ITEMS: st.SearchStrategy[Item] = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=5))


def model(item: Item) -> bytes:
    if isinstance(item, bytes | int):
        return rlp.encode(item)
    return rlp.encode([model(each) for each in item])


@given(ITEMS)
def test_it_encodes_as_the_yellow_paper_says(item: Item) -> None:
    assert encode(item) == model(item)
