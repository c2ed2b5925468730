"""The programs of docs/in-process.md, run as they are."""

import re
from pathlib import Path

from support.each_case import each_case

PAGE = Path(__file__).resolve().parents[2] / "docs" / "in-process.md"
PROGRAMS = re.findall(r"<!-- run -->\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@each_case("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_the_programs_of_the_page_run(program: str) -> None:
    assert "assert" in program
    exec(compile(program, PAGE.name, "exec"), {})  # noqa: S102, it is in this checkout
