"""Every file named in ARCHITECTURE.md exists."""

import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PAGE = CHECKOUT / "ARCHITECTURE.md"
FILE = re.compile(r"`([\w./]+\.(?:py|rs|md|sh))(?:::(\w+))?`")


def test_named_files_and_tests_exist() -> None:
    """A path is relative to the package, to the checkout, or to the folder of the previous file."""
    folder = CHECKOUT
    missing = []
    for path, test in FILE.findall(PAGE.read_text("utf-8")):
        places = [CHECKOUT / "python" / "foreblock" / path, CHECKOUT / path, folder / path]
        found = next((place for place in places if place.is_file()), None)
        if found is None or (test and f"def {test}(" not in found.read_text("utf-8")):
            missing.append(f"{path}::{test}" if test else path)
        else:
            folder = found.parent
    assert not missing
