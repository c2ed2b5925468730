"""The judge shares no code with the product."""

import ast
from pathlib import Path

# These run the product.
DRIVERS = {"rehearsal.py", "run.py", "sending.py", "served.py"}


def imported(source: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def test_no_judge_imports_the_product() -> None:
    folder = Path(__file__).parent
    modules = [path for path in folder.glob("*.py") if not path.name.startswith("test_")]
    users = {path.name for path in modules if "foreblock" in imported(path.read_text("utf-8"))}
    assert len(modules) > len(users) + 15
    assert users == DRIVERS
