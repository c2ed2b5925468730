"""Faults on purpose, for `--faults` and for commands.

`plan` decides which fault happens where. Faults of the chain are operations of the sequencer;
`feed` has a feed that loses, delays and garbles messages.
"""
