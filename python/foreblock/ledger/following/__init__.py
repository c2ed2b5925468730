"""A chain that others sequence: what its flashblocks and sealed blocks come to here.

`follower` in the package above decides; here are the parts that it decides with.
"""
