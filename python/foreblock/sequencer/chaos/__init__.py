"""Faults on purpose, for `--faults`: wrappers around a sequencer and its feed.

`faults` decides which fault happens where. `chaotic_sequencer` is a sequencer whose chain
gives up what it announced; `faulty_feed` is a feed that loses, delays and garbles, as
`feed_faults` decides. Nothing outside this folder knows of faults but the code that
chooses these classes instead of the plain ones.
"""
