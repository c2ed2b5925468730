"""What the canonical source keeps to, in one value."""

from dataclasses import dataclass, field

from foreblock.backoff import Waits


@dataclass(frozen=True, slots=True)
class CanonicalOptions:
    """Times in seconds, sizes in bytes."""

    poll: float = 1.0  # between two looks at the heads
    # A chain may be behind the endpoint for so long: its feed proves a block one message late.
    patience: float = 1.0
    # A wanted block that the endpoint lacks is asked for again, so often.
    retry: float = 0.25
    tries: int = 20
    depth: int = 128  # ancestors that are fetched for one block, before the fork is searched
    portion: int = 16  # blocks that are fetched before they are handed over
    # Of a branch so much is handed over at once, so that the chain goes over to it whole.
    branch_blocks: int = 1024
    branch_bytes: int = 64 * 1024 * 1024
    timeout: float = 20.0  # for one question
    longest_answer: int = 32 * 1024 * 1024  # hex of a block; no OP block may have 10 MiB
    waits: Waits = field(default_factory=Waits)
