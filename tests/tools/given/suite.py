"""Tests of a project run by pytest, reported as steps: one for each test."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from given import OUT, failed, ok, run


def run_tests(command: Sequence[str | Path], variables: Mapping[str, str], project: Path) -> None:
    """Run a suite by its command, which takes the options of pytest, and report each test."""
    report = OUT / "report.xml"
    try:
        said = run([*command, f"--junitxml={report}"], variables, project)
    except RuntimeError as error:  # a test failed, or none ran
        said = str(error)
    if not report.exists():
        raise RuntimeError(said)
    for case in ET.parse(report).iter("testcase"):  # noqa: S314
        name = case.attrib["name"]
        if name.startswith("test_") and case.find("skipped") is None:
            tell(name, case)


def tell(name: str, case: ET.Element) -> None:
    for kind in ("failure", "error"):
        found = case.find(kind)
        if found is not None:
            failed(name, found.attrib.get("message") or found.text)
            return
    ok(name)
