"""eth_simulateV1: blocks that could follow one, with the calls they are asked to hold.

    request    what is asked for, as values
    limits     how much may be asked for
    timeline   numbers and times, with the blocks that fill gaps
    branch     the simulated chain so far: one overlay above one state
    header     what a block begins with, by fork and chain
    calls      one call: defaults, checks in their order, what came of it
    block      one block: everything that happens in it, in its order
    run        all blocks

Reads as the specification does. What runs in the EVM is not run here but yielded
(`steps`), so that whoever drives a simulation decides where that happens.
"""
