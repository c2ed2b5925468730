from foreblock.sequencer.admission import admit
from foreblock.sequencer.budget import Budget, budget
from support.chains.sequencing import TERMS, transfer


def test_the_budget_grows_with_the_slots_to_the_whole_limit() -> None:
    assert [budget(slot, 3, 100).gas for slot in (1, 2, 3)] == [33, 66, 100]


def test_a_transaction_fits_by_its_gas_limit_and_by_its_data() -> None:
    pooled = admit(transfer(0, 0, gas=100_000), TERMS, 0)
    assert pooled.data_footprint == 14_800
    assert Budget(150_000).fits(pooled, 50_000, 0)
    assert not Budget(150_000).fits(pooled, 50_001, 0)
    assert Budget(150_000).fits(pooled, 0, 150_000 - 14_800)
    assert not Budget(150_000).fits(pooled, 0, 150_000 - 14_799)


def test_what_is_left_over_is_too_little_for_anything() -> None:
    assert not Budget(100_000).is_spent(79_000)
    assert Budget(100_000).is_spent(79_001)
