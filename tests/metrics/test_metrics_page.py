"""docs/metrics.md, the dashboard and the alert rules name exactly the exposed metrics."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock.ledger.following import classification, verdict
from foreblock.metrics.catalogue import FEED_OUTCOMES, METRICS
from foreblock.status.status_metrics import outcome_label
from website.markdown_links import anchors

NAME = re.compile(r"\b(?:foreblock|process)_[a-z_]+")
ALERT = re.compile(r"- alert: (\w+)")
RUNBOOK = re.compile(r"runbook_url: (\S+)\n")
# Rules that compare one metric with a number.
COMPARED = re.compile(r"expr: (?:max by \(.*\) )?\(?(foreblock_\w+)(?:{.*})?\)? (==|<|>) (\S+)\n")
OF_PROMETHEUS = {"up"}


def exposed() -> set[str]:
    """The names of all samples."""
    found = set()
    for metric in METRICS:
        ends = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
        found |= {metric.name + end for end in ends}
    return found


def test_every_metric_is_documented(checkout: Path) -> None:
    text = (checkout / "docs" / "metrics.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith(("| `foreblock_", "| `process_"))]
    assert rows == [
        f"| `{each.name}` | {each.kind} | {', '.join(f'`{label}`' for label in each.labels)} |"
        f" {each.help} |"
        for each in METRICS
    ]


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in board["panels"]:
        yield panel
        yield from panels({"panels": panel.get("panels", [])})


def test_every_panel_shows_series_that_exist(checkout: Path) -> None:
    board = json.loads((checkout / "deploy" / "grafana.json").read_text("utf-8"))
    shown = set()
    for panel in panels(board):
        if panel["type"] == "row":
            continue
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            named = set(NAME.findall(target["expr"]))
            assert named, panel["title"]
            assert named <= exposed(), panel["title"]
            shown |= named
    assert len({panel["id"] for panel in panels(board)}) == len(list(panels(board)))
    # Decide for every new metric where it is displayed.
    assert shown >= {each.name for each in METRICS if each.kind != "histogram"}, (
        "a metric without a panel"
    )


def test_every_alert_is_about_series_that_exist(checkout: Path) -> None:
    rules = (checkout / "deploy" / "alerts.yml").read_text("utf-8")
    assert set(NAME.findall(rules)) <= exposed()
    for each in rules.split("- alert: ")[1:]:
        assert NAME.search(each.partition("annotations")[0]) or "up{" in each


def test_every_alert_names_its_section_of_the_runbook(checkout: Path) -> None:
    rules = (checkout / "deploy" / "alerts.yml").read_text("utf-8").split("- alert: ")[1:]
    runbook = checkout / "docs" / "production.md"
    known = anchors(runbook.read_text("utf-8")) if runbook.exists() else None
    for rule in rules:
        name = rule.partition("\n")[0]
        section = "-".join(re.findall("[A-Z][a-z]+", name)).lower()
        assert RUNBOOK.findall(rule) == [f"docs/production.md#{section}"]
        assert known is None or section in known, name


def test_every_panel_is_described_and_shows_the_threshold_of_its_alert(checkout: Path) -> None:
    board = json.loads((checkout / "deploy" / "grafana.json").read_text("utf-8"))
    limits: dict[str, set[float]] = {}
    for panel in panels(board):
        if panel["type"] == "row":
            continue
        assert re.fullmatch(r"[A-Z0-9].*\.", panel["description"]), panel["title"]
        steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
        for target in panel["targets"]:
            for name in NAME.findall(target["expr"]):
                limits.setdefault(name, set()).update(each["value"] for each in steps[1:])
    rules = COMPARED.findall((checkout / "deploy" / "alerts.yml").read_text("utf-8"))
    assert len(rules) > 6
    for name, sign, value in rules:
        assert (1 if sign == "==" else float(value)) in limits[name], name


def test_promtool_takes_the_rules(checkout: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing; it is in Debian's package prometheus")
    done = subprocess.run(
        [promtool, "check", "rules", str(checkout / "deploy" / "alerts.yml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"SUCCESS: \d+ rules found", done.stdout)


def test_every_outcome_of_a_message_has_a_label() -> None:
    named = [
        value.__name__
        for module, union in ((classification, "Outcome"), (verdict, "Verdict"))
        for value in getattr(module, union).__args__
    ]
    assert len(named) > 15
    assert {outcome_label(each) for each in named} <= set(FEED_OUTCOMES) - {"other"}
    following = Path(classification.__file__).parent
    texts = "".join(each.read_text("utf-8") for each in following.glob("*.py"))
    counted = re.findall(r'(?:_tally|count|_counters)[\[(]"(\w+)"', texts)
    counted += re.findall(r'count\("\w+" if .* else "(\w+)"', texts)
    assert {"CanonicalDiverged", "MetadataAgrees", "MetadataDiffers", "Malformed"} <= set(counted)
    assert {outcome_label(each) for each in counted} <= set(FEED_OUTCOMES) - {"other"}
    assert outcome_label("SomethingNew") == "other"
