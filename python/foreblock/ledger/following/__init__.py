"""A chain that others sequence: its flashblocks and sealed blocks, followed and served.

`follower` is the entrance. `classification` decides where a message stands, without I/O;
`message_execution` executes and judges it; `served_chain`, `growth` and `sealing` change
what is served; `prober` executes what is not; `canonical` takes in sealed blocks.
"""
