"""The cells of examples/*.ipynb run in their order, with a plot that records what it is given."""

import ast
import asyncio
import inspect
import json
import sys
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest

from conftest import CHECKOUT

NOTEBOOK = json.loads((CHECKOUT / "examples" / "latency.ipynb").read_text("utf-8"))


async def run(cells: list[str], names: dict[str, Any]) -> None:
    for cell in cells:
        code = compile(cell, "latency.ipynb", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, names)  # noqa: S307, it is in this checkout
        if inspect.isawaitable(result):
            await result


def test_the_notebook_plots_two_latencies(monkeypatch: pytest.MonkeyPatch) -> None:
    plot, matplotlib = MagicMock(), ModuleType("matplotlib")
    matplotlib.pyplot = plot  # type: ignore[attr-defined] # not installed
    monkeypatch.setitem(sys.modules, "matplotlib", matplotlib)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", plot)
    sources = ["".join(c["source"]) for c in NOTEBOOK["cells"] if c["cell_type"] == "code"]
    settings = sources[0]
    sources[0] = settings.replace("PAYMENTS = 30", "PAYMENTS = 2").replace("TIME = 2", "TIME = 1")
    assert sources[0] != settings
    asyncio.run(run(sources, {}))
    preconfirmed, sealed = (call.args[0] for call in plot.step.call_args_list)
    assert len(preconfirmed) == len(sealed) == 2
    assert all(0 < fast < slow for fast, slow in zip(preconfirmed, sealed, strict=True))
    plot.show.assert_called_once_with()


def test_the_notebook_is_kept_without_output() -> None:
    assert all(not c.get("outputs") and not c.get("execution_count") for c in NOTEBOOK["cells"])
