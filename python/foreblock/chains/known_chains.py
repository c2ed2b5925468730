"""The chains that come with foreblock, by name, and chains from files."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from foreblock.chains.chain_file import ChainFacts, read_chain
from foreblock.errors import BadChain

_SUFFIX: Final = ".toml"
LONGEST_FILE: Final = 1 << 20  # bytes


def names() -> list[str]:
    """The names of all presets, in order."""
    folder = files(__package__).joinpath("presets")
    return sorted(
        each.name.removesuffix(_SUFFIX) for each in folder.iterdir() if each.name.endswith(_SUFFIX)
    )


@cache
def preset(name: str) -> ChainFacts:
    """The preset of this name. Raises `BadChain`."""
    if name not in names():
        raise BadChain(name, f"not a chain that foreblock knows; it knows {', '.join(names())}")
    text = files(__package__).joinpath("presets", name + _SUFFIX).read_text("utf-8")
    return read_chain(text, name)


def is_file(name_or_file: str) -> bool:
    """Whether a chain is named by a file: a text with a dot or a slash."""
    return "." in name_or_file or "/" in name_or_file


def find_chain(name_or_file: str) -> ChainFacts:
    """The preset of this name, or the chain in this file. Raises `BadChain`."""
    if not is_file(name_or_file):
        return preset(name_or_file)
    try:
        with Path(name_or_file).open("rb") as file:
            content = file.read(LONGEST_FILE + 1)
        text = content.decode("utf-8")
    except (OSError, ValueError) as why:
        reason = why.strerror if isinstance(why, OSError) and why.strerror else str(why)
        raise BadChain(name_or_file, reason.lower()) from why
    if len(content) > LONGEST_FILE:
        raise BadChain(name_or_file, f"longer than {LONGEST_FILE} bytes")
    return read_chain(text, name_or_file)
