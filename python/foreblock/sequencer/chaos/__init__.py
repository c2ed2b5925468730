"""Faults on purpose, for `--faults`.

`faults` decides which fault happens where. `chaotic_sequencer` is a sequencer whose chain
abandons blocks that it announced; `feed_faults` has a feed that loses, delays and garbles.
"""
