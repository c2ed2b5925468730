"""eth_simulateV1: blocks that could follow one, with the calls they are asked to hold.

    request    what is asked for, as values
    limits     how much may be asked for
    timeline   numbers and times, with the blocks that fill gaps
    branch     the simulated chain so far: one overlay above one state
    header     what a block begins with, by fork and chain
    open_block one block between its header and its seal
    calls      its calls: defaults, checks in their order, what comes of them
    block      one block: everything that happens in it, in its order
    run        all blocks
    usual      one block of plain calls, the short way
    steps      how it goes on in slices, and elsewhere where it takes long

Reads as the specification does. What a block is made of in the end stays in the engine
until it is sealed (`_engine.Body`): encodings, receipts, and what is hashed of them.
"""
