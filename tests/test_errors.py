import inspect
import pickle

import pytest

from foreblock import errors

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.ForeblockError)
]
FACTS = {"int": 7, "str": "words", "bytes": b"\xab" * 20}


def example(kind: type[errors.ForeblockError]) -> errors.ForeblockError:
    """An exception of this class, its facts given in order."""
    fields = getattr(kind, "__dataclass_fields__", {})
    return kind(*(FACTS[field.type.__name__] for field in fields.values()))


@pytest.mark.parametrize("kind", CLASSES)
def test_every_exception_stands_in_the_tree_under_its_family(
    kind: type[errors.ForeblockError],
) -> None:
    assert errors.__doc__ is not None
    lines = [line.strip(" │├└─") for line in errors.__doc__.splitlines()]
    drawn = {line.split()[0] for line in lines if line}
    assert kind.__name__ in drawn


@pytest.mark.parametrize("kind", CLASSES)
def test_every_exception_keeps_its_facts_when_it_crosses_a_process(
    kind: type[errors.ForeblockError],
) -> None:
    before = example(kind)
    after = pickle.loads(pickle.dumps(before))  # noqa: S301, our own bytes
    assert type(after) is kind
    assert str(after) == str(before)
    assert vars(after) == vars(before)


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if not kind.__subclasses__()])
def test_every_exception_makes_a_sentence_of_all_its_facts(
    kind: type[errors.ForeblockError],
) -> None:
    error = example(kind)
    for fact in vars(error).values():
        assert (fact.hex() if isinstance(fact, bytes) else str(fact)) in str(error)
    assert str(error)


def test_bad_block_says_what_was_expected_and_found() -> None:
    error = errors.BadBlock(12, "gas limit", "at most 5", "7")
    assert str(error) == "block 12: gas limit: expected at most 5, found 7"
