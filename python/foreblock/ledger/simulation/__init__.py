"""eth_simulateV1: blocks that could follow one, with the calls they are asked to hold.

    simulation_request   the request, its limits, numbers and times of all blocks
    simulated_chain      the chain so far: one overlay above one state
    simulated_header     the header that a block begins with, by fork and chain
    open_block           one block between its header and its seal
    simulated_calls      its calls: defaults, checks in their order, runs
    run                  each block: everything that happens in it, in order
    single_block         one block of plain calls, the fast path

Reads as the specification does. The engine holds a block until it is sealed (`_engine.Body`):
encodings, receipts, and the hashes over them.
"""
