"""The engine: EVM execution on a durable store of every state.

The engine does the work per opcode and per byte. Python makes the decisions: which fork is active,
what a header must contain, and the order of operations in a block.

Values are plain: addresses, hashes and data are bytes, numbers are int. An argument of the wrong
type raises TypeError; bytes of the wrong length or a number out of range raise `InvalidArgument`;
every other failure is a class of `foreblock.errors`. A default shown as `...` is 0 or empty. The
interpreter's lock is released during execution, commits, root computation and decoding.

The submodules exist in the stub only: at run time this is one module.
"""

from foreblock._engine.abi import *
from foreblock._engine.codec import *
from foreblock._engine.evm import *
from foreblock._engine.fast_path import *
from foreblock._engine.fetched_state import *
from foreblock._engine.logs import *
from foreblock._engine.meter import *
from foreblock._engine.params import *
from foreblock._engine.simulate import *
from foreblock._engine.state import *
from foreblock._engine.store import *
from foreblock._engine.stored import *
from foreblock._engine.tracing import *
from foreblock._engine.transactions import *
from foreblock._engine.witness import *
