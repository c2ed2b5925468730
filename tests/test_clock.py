"""Clocks: the machine's, and a driven one."""

import time

from foreblock.clock import DrivenClock, SystemClock, boot_id


def test_the_system_clock_is_the_machines() -> None:
    clock = SystemClock()
    before, wall = time.monotonic_ns(), time.time_ns()
    assert before <= clock.monotonic_ns() <= time.monotonic_ns()
    assert wall <= clock.wall_ns() <= time.time_ns()


def test_a_driven_clock_stands_still_until_it_is_driven() -> None:
    clock = DrivenClock(wall_ns=1000, monotonic_ns=5)
    assert (clock.wall_ns(), clock.monotonic_ns()) == (1000, 5)
    clock.advance(7)
    assert (clock.wall_ns(), clock.monotonic_ns()) == (1007, 12)
    clock.set_wall(3)
    assert (clock.wall_ns(), clock.monotonic_ns()) == (3, 12)


def test_the_boot_id_is_the_same_each_time() -> None:
    assert len(boot_id()) == 16
    assert boot_id() == boot_id()
