"""How soon a pre-confirmation is readable: `foreblock dev` under load, and clients around it.

Every client is a process of its own, as clients are, and all times are of the one monotonic
clock that processes of a machine share. What the sequencer did when, it logs itself; what
was seen when, the clients tell. Nothing here is imported by what is measured.
"""
