"""eth-tester on `foreblock.eth_tester.Backend`: its acceptance tests, and the page about it."""

import re

from support.servers.client_libraries import HERE, IN_PROCESS, run

PAGE = (HERE.parents[1] / "docs" / "from-eth-tester.md").read_text("utf-8")
CHOSEN = {**IN_PROCESS, "ETHEREUM_TESTER_CHAIN_BACKEND": "foreblock.eth_tester.Backend"}
PASSED = 101 + 18  # those of eth-tester, and ours
# Of this project's own configuration nothing holds there.
ALONE = ("--noconftest", "-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider")


def test_the_acceptance_tests_pass() -> None:
    told = run("eth-tester", "-m", "pytest", "-q", *ALONE, "eth_tester_cases.py", variables=CHOSEN)
    assert re.match(rf"{PASSED} passed in ", told.splitlines()[-1])


def test_the_program_of_the_page_runs() -> None:
    (program,) = re.findall(r"<!-- run -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert "assert" in program
    run("eth-tester", "-", program=program, variables=CHOSEN)


def test_the_page_names_the_variable() -> None:
    assert f"ETHEREUM_TESTER_CHAIN_BACKEND={CHOSEN['ETHEREUM_TESTER_CHAIN_BACKEND']}" in PAGE
