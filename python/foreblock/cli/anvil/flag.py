"""A flag of anvil: its names, its help, and what it means in settings. No I/O."""

from collections.abc import Callable
from typing import Final, NamedTuple

Settings = dict[str, str]

# Sections of the help.
CHAIN: Final = "Chain"
ACCOUNTS: Final = "Accounts"
MINING: Final = "Blocks"
SERVER: Final = "Server"
STATE: Final = "State"
OUTPUT: Final = "Output"
WITHOUT_EFFECT: Final = "Taken without effect"
REFUSED: Final = "Refused"


class AnvilFlag(NamedTuple):
    """One flag. Its value is a text; a switch has none, and some may be left out."""

    names: tuple[str, ...]  # that help shows
    help: str
    section: str
    metavar: str = ""  # empty for a switch
    gives: Callable[[str], Settings] = lambda _: {}
    aliases: tuple[str, ...] = ()
    repeats: bool = False
    otherwise: str | None = None  # the value where it is left out, if it may be

    @property
    def key(self) -> str:
        """Its name as a parameter."""
        return max(self.names, key=len).strip("-").replace("-", "_")
