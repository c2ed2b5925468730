"""A dev chain that begins at a block of another chain, whose state it fetches as needed.

`docs/design/forking.md` describes it. `choosing` finds the block, `forked_chain` has what a
sequencer needs, `history` what clients read below the block.
"""
