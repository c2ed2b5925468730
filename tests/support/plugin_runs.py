"""Runs of pytest with the plugin of this checkout."""

import pytest

# Where foreblock is installed with its entry point, the plugin has that name.
PLUGIN = ("-p", "no:foreblock", "-p", "foreblock.pytest_plugin", "-p", "no:randomly")


def run_pytest(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", *arguments)
