"""The chain and its state: the rules of blocks, and the store that holds them.

Only this package and the benchmarks use the operations of the engine. It opens no socket and prints
nothing.
"""
