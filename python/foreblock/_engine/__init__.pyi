"""The engine: EVM execution over a durable store of every state.

What runs per opcode or per byte, and nothing that is decided by the rules of a chain:
which fork is in force, what a header must hold, in which order things happen in a block
is Python's. Values across are plain: addresses, hashes and data are bytes, numbers are
int. An argument of the wrong type is a TypeError; bytes of the wrong length or a number
out of range is `InvalidArgument`; every other failure is a class of `foreblock.errors`.
A default shown as `...` is 0 or empty.
The interpreter's lock is released around execution, commits, roots and decoding.
"""

from foreblock._engine.codec import *
from foreblock._engine.evm import *
from foreblock._engine.fast_path import *
from foreblock._engine.params import *
from foreblock._engine.simulate import *
from foreblock._engine.state import *
from foreblock._engine.store import *
from foreblock._engine.stored import *
from foreblock._engine.transactions import *
