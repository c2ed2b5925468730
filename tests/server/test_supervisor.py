from itertools import islice

from foreblock.server.supervisor import backoff


def test_delays_grow_from_a_tenth_of_a_second_to_five() -> None:
    delays = list(islice(backoff(), 9))
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
