"""Fixtures for tests on a chain in the process: `chain`, `followed_chain`, `w3` and wider chains.

pytest loads this module in every run where foreblock is installed, so it imports nothing of
foreblock before a fixture is used.
"""

import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from foreblock.dev_chain import DevChain, FollowedDevChain

OPTIONS = {
    "rules": "rules of the chains: optimism or ethereum",
    "fork": "fork of these rules",
    "seed": "seed of the chains",
    "faults": "faults of the chains and their feeds, as in tail=0.1,drop=0.05",
}
READERS: dict[str, Callable[[str], Any]] = {
    "seed": int,
    "faults": lambda text: tuple(text.split(",")),
}
WIDER = ("module_chain", "session_chain")
REPORTS = pytest.StashKey[dict[str, Callable[[], str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option for each setting that a run may change."""
    group = parser.getgroup("foreblock", "chains of foreblock")
    for name, words in OPTIONS.items():
        group.addoption(f"--chain-{name}", metavar=name.upper(), help=words)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "chain(rules, fork, seed, mode, faults, …): settings of foreblock.DevChain for the chain of"
        " a test or, in pytestmark, of a module",
    )


def _settings(node: pytest.Item | pytest.Collector, config: pytest.Config) -> dict[str, Any]:
    """The settings of the markers of a node, the closest first, and of the options."""
    given = {name: config.getoption(f"chain_{name}") for name in OPTIONS}
    found = {name: READERS.get(name, str)(text) for name, text in given.items() if text is not None}
    for marker in reversed(list(node.iter_markers("chain"))):
        found |= marker.kwargs
    return found


class _Chains:
    """The chains of a run that tests share, by their settings."""

    def __init__(self) -> None:
        self._open: dict[str, DevChain] = {}

    def get(self, settings: Mapping[str, Any]) -> "DevChain":
        from foreblock.dev_chain import DevChain  # noqa: PLC0415, only when it is used

        key = repr(sorted(settings.items()))
        if key not in self._open:
            self._open[key] = DevChain(**settings)
        return self._open[key]

    def close(self, chain: "DevChain | None" = None) -> None:
        """Close a chain, or all."""
        for key, each in list(self._open.items()):
            if chain in (None, each):
                self._open.pop(key).close()


@pytest.fixture(scope="session")
def foreblock_chains() -> Iterator[_Chains]:
    """The chains that the tests of this process share."""
    chains = _Chains()
    yield chains
    chains.close()


@pytest.fixture(scope="session")
def session_chain(request: pytest.FixtureRequest) -> Iterator["DevChain"]:
    """A chain for all tests of this process."""
    yield from _own(_settings(request.session, request.config))


@pytest.fixture(scope="module")
def module_chain(request: pytest.FixtureRequest) -> Iterator["DevChain"]:
    """A chain for the tests of a module."""
    yield from _own(_settings(request.node, request.config))


def _own(settings: Mapping[str, Any]) -> Iterator["DevChain"]:
    from foreblock.dev_chain import DevChain  # noqa: PLC0415, only when it is used

    with DevChain(**settings) as chain:
        yield chain


@pytest.fixture
def chain(request: pytest.FixtureRequest, foreblock_chains: _Chains) -> Iterator["DevChain"]:
    """A chain that returns to its state after the test.

    It is that of `followed_chain`, `module_chain` or `session_chain` if the test uses one, also
    through its fixtures.
    """
    settings = _settings(request.node, request.config)
    wider = next((each for each in WIDER if each in request.fixturenames), None)
    if "followed_chain" in request.fixturenames:
        yield request.getfixturevalue("followed_chain").chain
        return
    if wider is None:
        found = foreblock_chains.get(settings)
    elif settings == _settings(request.node.getparent(pytest.Module), request.config):
        found = request.getfixturevalue(wider)
    else:
        raise pytest.UsageError(f"the test has the settings of {wider}, and none of its own")
    snapshot = found.snapshot()
    request.node.stash[REPORTS] = {"chain": found.watch()}
    yield found
    del request.node.stash[REPORTS]  # the revert is no event of the test
    if found.is_closed or not snapshot.revert():
        foreblock_chains.close(found)


@pytest.fixture
def followed_chain(request: pytest.FixtureRequest) -> Iterator["FollowedDevChain"]:
    """A chain of its own, and a second service that follows its feed."""
    from foreblock.dev_chain import DevChain, FollowedDevChain  # noqa: PLC0415, only when it is used

    with DevChain(**_settings(request.node, request.config)) as chain:
        follower = chain.follow()
        request.node.stash[REPORTS] = {"chain": chain.watch(), "follower": follower.watch()}
        yield FollowedDevChain(chain, follower)


@pytest.fixture
def w3(chain: "DevChain") -> Any:  # noqa: ANN401, web3 may not be installed
    """A `web3.Web3` on `chain`."""
    return chain.web3()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(
    pyfuncitem: pytest.Function,
) -> Generator[None, object, object]:
    """Return the chain to its state after each example of Hypothesis."""
    test = getattr(pyfuncitem.obj, "hypothesis", None)
    chains: dict[int, Any] = {
        id(each): each for each in pyfuncitem.funcargs.values() if _is_chain(each)
    }
    if test is None or not chains:
        return (yield)
    inner = test.inner_test

    @wraps(inner)
    def example(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401, of the test
        snapshots = [each.snapshot() for each in chains.values()]
        try:
            return inner(*arguments, **named)
        finally:
            for snapshot in snapshots:
                snapshot.revert()

    test.inner_test = example
    try:
        return (yield)
    finally:
        test.inner_test = inner


def _is_chain(value: object) -> bool:
    """Return True for a `DevChain`; a project may have fixtures of its own with these names."""
    loaded = sys.modules.get("foreblock.dev_chain")
    return loaded is not None and isinstance(value, loaded.DevChain)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what happened on the chain of a test that failed, and at its follower."""
    report = yield
    if report.when == "call" and report.failed:
        for name, report_text in item.stash.get(REPORTS, {}).items():
            if text := report_text():
                report.sections.append((name, text))
    return report
