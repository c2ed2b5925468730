"""Receipts and blooms, compared with alloy's in the engine."""

from checker.receipts import NO_BLOOM, Log, bloom, receipt, unite
from foreblock import _engine

LOGS = [
    Log(bytes([number]) * 20, tuple(bytes([number, topic]) * 16 for topic in range(number)), b"x")
    for number in range(4)
]


def test_receipts_are_encoded_as_in_their_trie() -> None:
    logs = [(log.address, log.topics, log.data) for log in LOGS]
    expected = _engine.Receipt(type=2, cumulative_gas_used=70_000, status=True, logs=logs)
    assert receipt(2, 70_000, LOGS) == expected.encode()
    deposit = _engine.Receipt(
        type=0x7E,
        cumulative_gas_used=46_218,
        status=True,
        deposit_nonce=0,
        deposit_receipt_version=1,
    )
    assert receipt(0x7E, 46_218, (), 0) == deposit.encode()


def test_the_bloom_of_a_block_is_that_of_all_its_logs() -> None:
    united = NO_BLOOM
    for log in LOGS:
        united = unite(united, bloom([log]))
    receipts = [
        _engine.Receipt(
            type=2,
            cumulative_gas_used=1,
            status=True,
            logs=[(log.address, log.topics, log.data)],
        )
        for log in LOGS
    ]
    assert united == bloom(LOGS) == _engine.logs_bloom(receipts)
