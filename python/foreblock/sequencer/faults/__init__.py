"""Faults on purpose, for `--faults` and for commands.

`plan` decides which fault happens where. Restarts, dropped tails and reorganisations are
operations of the sequencer; `feed` has a feed that loses, delays and garbles messages, or
contradicts itself.
"""
