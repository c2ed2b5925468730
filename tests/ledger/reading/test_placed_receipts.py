import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import Log, Receipt
from foreblock.ledger.reading.stored_block import deposit_fields

U64 = st.integers(0, 2**64 - 1)
LOGS = st.lists(
    st.builds(
        Log,
        st.binary(min_size=20, max_size=20),
        st.lists(st.binary(min_size=32, max_size=32), max_size=4),
        st.binary(max_size=300),
    ),
    max_size=5,
)


@given(U64, U64, st.booleans(), LOGS)
def test_fields_of_a_deposit(nonce: int, gas: int, status: bool, logs: list[Log]) -> None:
    receipt = Receipt(
        type=0x7E,
        cumulative_gas_used=gas,
        status=status,
        logs=logs,
        deposit_nonce=nonce,
        deposit_receipt_version=1,
    )
    assert deposit_fields(receipt.encode()) == (nonce, 1)


def test_deposit_before_canyon_does_not_tell() -> None:
    receipt = Receipt(type=0x7E, cumulative_gas_used=1, status=True, deposit_nonce=5)
    assert deposit_fields(receipt.encode()) is None


@pytest.mark.parametrize("kind", [0, 1, 2, 4])
def test_other_receipts_have_no_such_fields(kind: int) -> None:
    assert deposit_fields(Receipt(type=kind, cumulative_gas_used=1, status=True).encode()) is None
