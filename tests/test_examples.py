"""Each program of examples/ prints the lines that its docstring shows."""

import ast
import re
import runpy
from pathlib import Path

import pytest
import structlog

from conftest import CHECKOUT
from support.each_case import each_case

PROGRAMS = sorted((CHECKOUT / "examples").glob("*.py"))


@each_case("path", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = path.read_text("utf-8")
    assert len(source.splitlines()) < 80
    shown = re.findall(r"^    (.+)$", ast.get_docstring(ast.parse(source)) or "", re.MULTILINE)
    assert len(shown) > 2
    structlog.reset_defaults()  # as in a process of its own
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == shown
