"""The sequencer of a dev chain: its genesis, its pool and its blocks."""
