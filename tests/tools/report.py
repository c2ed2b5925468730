"""The table of passes, and its regressions."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.exceptions import EXEMPTIONS, Exemption
from tools.flows import Flow
from tools.outcome import Outcome
from tools.targets import OURS

BEGIN, END = "<!-- tools -->", "<!-- end of tools -->"
Results = Mapping[tuple[Flow, str], Outcome]


def regressions(results: Results) -> Iterator[tuple[str, Flow, str, str]]:
    """Target, flow, step and reason of each step that passes on anvil and not here."""
    for (flow, target), found in results.items():
        there = results.get((flow, "anvil"))
        if target not in OURS or there is None:
            continue
        for step in there.passed:
            if step not in found.passed:
                yield target, flow, step, found.failed.get(step, "not reached")


def excuse(target: str, flow: Flow, step: str) -> Exemption | None:
    """The row that exempts this step."""
    for each in EXEMPTIONS:
        if each.covers(target, flow.family, flow.name, step):
            return each
    return None


def cell(found: Outcome | None, excused: int) -> str:
    """One result: the number of passed steps, and of all if some failed."""
    if found is None:
        return ""
    steps = len(found.passed) + len(found.failed)
    passed = f"{len(found.passed)} of {steps}" if found.failed else f"{steps}"
    note = f", {excused} excepted" if excused else ""
    return f"{passed}{note}"


def table(results: Results, targets: list[str]) -> str:
    """All results as Markdown, one row per flow."""
    excused: dict[tuple[Flow, str], int] = {}
    for target, flow, step, _ in regressions(results):
        if excuse(target, flow, step):
            excused[flow, target] = excused.get((flow, target), 0) + 1
    lines = [f"| Family | Flow | {' | '.join(targets)} |", "|---" * (len(targets) + 2) + "|"]
    for flow in dict.fromkeys(flow for flow, _ in results):
        cells = [cell(results.get((flow, t)), excused.get((flow, t), 0)) for t in targets]
        lines.append(f"| {flow.family} | {flow.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def exceptions(results: Results) -> str:
    """Steps that pass on anvil and need not pass here, with the reasons, as Markdown."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for target, flow, step, _ in regressions(results):
        if row := excuse(target, flow, step):
            named = f"{flow.family}, {flow.name}: {step}"
            found.setdefault((target, row.reason), {})[named] = None
    lines = ["| Chain | Step | Reason |", "|---|---|---|"]
    for (target, reason), steps in sorted(found.items()):
        lines.append(f"| {target} | {'; '.join(steps)} | {reason} |")
    return "\n".join(lines) if found else "Every step that passes on anvil passes here."


def write(page: Path, text: str) -> None:
    """Insert the table into a page, between its marks."""
    old = page.read_text("utf-8")
    new = re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{text}\n{END}", old, flags=re.DOTALL)
    page.write_text(new, "utf-8")
