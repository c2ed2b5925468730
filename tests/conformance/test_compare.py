"""Differences have paths, kinds count, and long values show where they diverge."""

import json

from hypothesis import given
from hypothesis import strategies as st

from foreblock.conformance.compare import WIDTH, differences, shape_differences
from support.each_case import each_case

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@each_case(
    ("expected", "found", "shown"),
    [
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, "$.a[0].b: expected 1, found 2"),
        ({"a": 1}, {}, "$.a: expected 1, found nothing"),
        ({}, {"a": None}, "$.a: expected nothing, found null"),
        ([1], [1, 2], "$[1]: expected nothing, found 2"),
        ([1, 2], [1], "$[1]: expected 2, found nothing"),
        (1, True, "$: expected 1, found true"),
        ("0x1", "0x01", '$: expected "0x1", found "0x01"'),
        ([], {}, "$: expected [], found {}"),
    ],
)
def test_one_difference(expected: object, found: object, shown: str) -> None:
    (difference,) = differences(expected, found)
    assert str(difference) == shown


@given(JSON)
def test_a_value_equals_itself_in_any_key_order(value: object) -> None:
    assert not differences(value, json.loads(json.dumps(value, sort_keys=True)))


@given(JSON, JSON)
def test_no_difference_means_the_same_json(one: object, other: object) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (not differences(one, other)) == same


def test_long_values_are_cut_to_where_they_part() -> None:
    (difference,) = differences("0x" + "0" * 300 + "a", "0x" + "0" * 300 + "b")
    assert "a" in difference.expected
    assert "b" in difference.found
    assert len(difference.expected) <= WIDTH + 2


def test_message_differences_are_known_as_such() -> None:
    one, other = {"error": {"message": "a"}}, {"error": {"message": "b"}}
    assert differences(one, other)[0].in_message
    assert differences([one], [other])[0].in_message
    assert not differences(one, {"error": {}})[0].in_message


@each_case(
    ("expected", "found", "fits"),
    [
        ("0x1", "0xffff", True),
        ("0x1", "one", False),
        ({"a": "0x1"}, {"a": "0x2"}, True),
        ({"a": "0x1"}, {"a": "0x2", "b": 1}, False),
        ([{"a": 1}], [{"a": 2}, {"a": 3}], True),
        ([{"a": 1}], [{"a": 2}, {"b": 3}], False),
        ([{"a": 1}, {"b": 1}], [{"b": 2}, {"a": 3}], True),
        ([{"a": 1}, {"b": 1}], [{"a": 2, "b": 3}], False),
        ({"error": {"code": 3}}, {"result": "0x"}, False),
    ],
)
def test_shapes(expected: object, found: object, fits: bool) -> None:
    assert (not shape_differences(expected, found)) == fits
