"""The command that lets a chain be printed: what happens on it, and what transactions call."""

from foreblock.bus.commands import SetPrinting
from foreblock.sequencer.dev.branching import BranchingSequencer


def set_printing(sequencer: BranchingSequencer, command: SetPrinting) -> None:
    """Print from now on, or no longer; what is none stays."""
    state = sequencer.state
    sequencer.change(
        prints=state.prints if command.is_on is None else command.is_on,
        prints_traces=state.prints_traces if command.traces is None else command.traces,
    )
    sequencer.mark_changed()
