"""Lists of cases: combined into one test that reports every failure, or split between the tiers."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

Test = Callable[..., None]
Ids = Callable[[Any], object] | Iterable[object]

_WITH_ID = type(pytest.param())


def each_case(
    names: str | Sequence[str], values: Iterable[object], ids: Ids | None = None
) -> Callable[[Test], Test]:
    """Call a test with each of the values; the arguments are those of `pytest.mark.parametrize`.

    To pytest the cases are one test: they share its fixtures and cost little more than their
    assertions. Failures are raised together, each with a note that names its case.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = list(_cases(keys, values, ids))

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: object) -> None:
            failures: list[BaseException] = []
            for name, case in cases:
                try:
                    test(**fixtures, **case)
                except (Exception, BaseExceptionGroup, pytest.fail.Exception) as failure:  # noqa: BLE001
                    failure.add_note(f"case: {name}")
                    failures.append(failure)
            if failures:
                message = f"{len(failures)} of {len(cases)} cases failed"
                raise BaseExceptionGroup(message, failures)

        signature = inspect.signature(test)
        fixtures = [each for each in signature.parameters.values() if each.name not in keys]
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return decorate


def _cases(
    keys: list[str], values: Iterable[object], ids: Ids | None
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the name and the arguments of each case."""
    listed = None if ids is None or callable(ids) else iter(ids)
    for value in values:
        arguments: Sequence[object]
        name: object = None
        if isinstance(value, _WITH_ID):
            assert not value.marks, "a case cannot be marked by itself"
            arguments, name = value.values, value.id
        else:
            arguments = value if len(keys) > 1 else [value]  # type: ignore[assignment]
        if listed is not None:
            name = next(listed)
        if name is None:
            show = ids if callable(ids) else repr
            name = ", ".join(str(show(each)) for each in arguments)
        yield str(name), dict(zip(keys, arguments, strict=True))


def sampled(values: Iterable[object], count: int) -> list[object]:
    """Mark values of `pytest.mark.parametrize` as heavy, except `count` that are spread evenly."""
    every = list(values)
    quick = {place * len(every) // count for place in range(count)}
    return [each if place in quick else _heavy(each) for place, each in enumerate(every)]


def _heavy(value: object) -> object:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.heavy)
