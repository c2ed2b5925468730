"""The sequencer of a network as methods use it: submissions, pool, commands and keys."""

from typing import Literal, NamedTuple

from foreblock.methods.dev.commanding import Commands
from foreblock.methods.keys import NO_KEYS, Keys
from foreblock.methods.pool.sending import NoSequencer, Submissions
from foreblock.methods.waiting_pool import EmptyPool, WaitingPool


class Sequencing(NamedTuple):
    """The sequencer of one network; by default there is none."""

    submissions: Submissions = NoSequencer()
    pool: WaitingPool = EmptyPool()
    commands: Commands | None = None  # of a development chain only
    keys: Keys = NO_KEYS  # of its accounts
    order: Literal["fees", "fifo"] = "fees"  # of its transactions
    hidden: str = ""  # why methods of development chains are refused, if they are
