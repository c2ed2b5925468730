import inspect
import pickle

import pytest

from foreblock import errors
from foreblock._engine import MissingKeys

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.ForeblockError)
]
FACTS = {
    "int": 7,
    "str": "words",
    "bytes": b"\xab" * 20,
    "MissingKeys": MissingKeys([b"\xab" * 20]),
}


def example(kind: type[errors.ForeblockError]) -> errors.ForeblockError:
    """An exception of this class, with its fields in order."""
    needed = [each for each in kind.__match_args__ if not hasattr(kind, each)]
    kinds = {
        name: of for each in kind.__mro__ for name, of in inspect.get_annotations(each).items()
    }
    return kind(*(FACTS[getattr(kinds[name], "__name__", kinds[name])] for name in needed))


def test_every_exception_keeps_its_facts_when_it_crosses_a_process() -> None:
    for before in map(example, CLASSES):
        after = pickle.loads(pickle.dumps(before))  # noqa: S301, our own bytes
        assert type(after) is type(before)
        assert str(after) == str(before)
        assert vars(after) == vars(before)


def test_every_exception_makes_a_sentence_of_all_its_facts() -> None:
    for error in [example(kind) for kind in CLASSES if not kind.__subclasses__()]:
        for fact in filter(None, vars(error).values()):
            shown = fact.hex() if isinstance(fact, bytes) else str(fact)
            assert shown in str(error), type(error)
        assert str(error), type(error)


def test_bad_block_says_what_was_expected_and_found() -> None:
    error = errors.BadBlock(12, "gas limit", "at most 5", "7")
    assert str(error) == "block 12: gas limit: expected at most 5, found 7"


def test_facts_are_given_in_order_or_by_name_and_all_of_them() -> None:
    error = errors.BadArgument("no number", argument=2, path="$[0]")
    assert (error.why, error.argument, error.path) == ("no number", 2, "$[0]")
    assert repr(error) == "BadArgument(why='no number', argument=2, path='$[0]')"
    assert errors.ErrorAnswer(3, "reverted").data == "", "which need not be given"
    wrong: list[tuple[tuple[object, ...], dict[str, object]]] = [
        (("no number", 2), {}),
        (("no number", 2, "", ""), {}),
        (("no number", 2), {"place": ""}),
        (("no number", 2, ""), {"path": ""}),
    ]
    for facts, named in wrong:
        with pytest.raises(TypeError, match="BadArgument has the facts"):
            errors.BadArgument(*facts, **named)  # type: ignore[arg-type]
