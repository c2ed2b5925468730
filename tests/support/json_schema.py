"""Validate values against JSON Schemas of draft 7, as far as the schemas here use it.

An unknown keyword raises, so that no schema is silently checked in part.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Schema = Any  # an object, or true or false
Json = Any

TYPES: dict[str, Callable[[Json], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
}
WITHOUT_EFFECT = {
    "$schema", "$id", "$comment", "title", "description", "default", "definitions", "format",
    "examples", "components", "readOnly",
}  # fmt: skip


class Validator:
    """Schemas that refer to each other by id, and to parts of themselves by path."""

    def __init__(self, *schemas: Mapping[str, Json]) -> None:
        self._by_id = {str(each.get("$id", "")).rstrip("/"): each for each in schemas}

    def failures(self, value: Json, schema: Schema, root: Json, path: str = "$") -> Iterator[str]:
        """Return the violations, each with its path; local references resolve in `root`."""
        if isinstance(schema, bool):
            if not schema:
                yield f"{path}: nothing may be here"
            return
        if "$ref" in schema:
            yield from self.failures(value, *self._resolve(schema["$ref"], root), path)
            return
        for keyword, wanted in schema.items():
            if keyword in WITHOUT_EFFECT:
                continue
            check = getattr(self, f"_{keyword}", None)
            assert check is not None, f"unknown keyword {keyword}"
            yield from check(value, wanted, schema, root, path)

    def _resolve(self, reference: str, root: Json) -> tuple[Schema, Json]:
        name, _, pointer = reference.partition("#")
        root = self._by_id[name.rstrip("/")] if name else root
        found = root
        for step in filter(None, pointer.split("/")):
            found = found[int(step) if isinstance(found, list) else step]
        return found, root

    def _fits(self, value: Json, schema: Schema, root: Json) -> bool:
        return next(self.failures(value, schema, root), None) is None

    def _type(self, value: Json, wanted: str | list[str], *at: Any) -> Iterator[str]:  # noqa: ANN401
        kinds = [wanted] if isinstance(wanted, str) else wanted
        if not any(TYPES[kind](value) for kind in kinds):
            yield f"{at[-1]}: expected {' or '.join(kinds)}, found {value!r:.60}"

    def _enum(self, value: Json, wanted: Sequence[Json], *at: Any) -> Iterator[str]:  # noqa: ANN401
        if value not in wanted:
            yield f"{at[-1]}: {value!r:.60} is none of {wanted}"

    def _pattern(self, value: Json, wanted: str, *at: Any) -> Iterator[str]:  # noqa: ANN401
        if isinstance(value, str) and not re.search(wanted, value):
            yield f"{at[-1]}: {value!r:.60} does not match {wanted}"

    def _minimum(self, value: Json, wanted: float, *at: Any) -> Iterator[str]:  # noqa: ANN401
        if TYPES["number"](value) and value < wanted:
            yield f"{at[-1]}: {value} is below {wanted}"

    def _exclusiveMinimum(self, value: Json, wanted: float, *at: Any) -> Iterator[str]:  # noqa: ANN401, N802
        if TYPES["number"](value) and value <= wanted:
            yield f"{at[-1]}: {value} is not above {wanted}"

    def _minLength(self, value: Json, wanted: int, *at: Any) -> Iterator[str]:  # noqa: ANN401, N802
        if isinstance(value, str) and len(value) < wanted:
            yield f"{at[-1]}: shorter than {wanted}"

    def _minItems(self, value: Json, wanted: int, *at: Any) -> Iterator[str]:  # noqa: ANN401, N802
        if isinstance(value, list) and len(value) < wanted:
            yield f"{at[-1]}: fewer than {wanted} items"

    def _uniqueItems(self, value: Json, wanted: bool, *at: Any) -> Iterator[str]:  # noqa: ANN401, N802
        if wanted and isinstance(value, list) and len({repr(each) for each in value}) < len(value):
            yield f"{at[-1]}: an item stands twice"

    def _required(self, value: Json, wanted: list[str], *at: Any) -> Iterator[str]:  # noqa: ANN401
        if isinstance(value, dict):
            yield from (f"{at[-1]}: lacks {name}" for name in wanted if name not in value)

    def _properties(
        self, value: Json, wanted: Mapping[str, Schema], _schema: Schema, root: Json, path: str
    ) -> Iterator[str]:
        for name in wanted if isinstance(value, dict) else ():
            if name in value:
                yield from self.failures(value[name], wanted[name], root, f"{path}.{name}")

    def _patternProperties(  # noqa: N802
        self, value: Json, wanted: Mapping[str, Schema], _schema: Schema, root: Json, path: str
    ) -> Iterator[str]:
        for name, member in value.items() if isinstance(value, dict) else ():
            for pattern, schema in wanted.items():
                if re.search(pattern, name):
                    yield from self.failures(member, schema, root, f"{path}.{name}")

    def _additionalProperties(  # noqa: N802
        self, value: Json, wanted: Schema, schema: Schema, root: Json, path: str
    ) -> Iterator[str]:
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, member in value.items() if isinstance(value, dict) else ():
            if name not in known and not any(re.search(each, name) for each in patterns):
                yield from self.failures(member, wanted, root, f"{path}.{name}")

    def _propertyNames(  # noqa: N802
        self, value: Json, wanted: Schema, _schema: Schema, root: Json, path: str
    ) -> Iterator[str]:
        for name in value if isinstance(value, dict) else ():
            yield from self.failures(name, wanted, root, f"{path}.{name}")

    def _items(
        self, value: Json, wanted: Schema, _schema: Schema, root: Json, path: str
    ) -> Iterator[str]:
        assert not isinstance(wanted, list), "lists of schemas are not known here"
        for place, item in enumerate(value if isinstance(value, list) else ()):
            yield from self.failures(item, wanted, root, f"{path}[{place}]")

    def _additionalItems(self, *_at: Any) -> Iterator[str]:  # noqa: ANN401, N802
        yield from ()  # no effect if `items` is one schema

    def _anyOf(  # noqa: N802
        self, value: Json, wanted: Sequence[Schema], _schema: Schema, root: Json, path: str
    ) -> Iterator[str]:
        failures = [list(self.failures(value, each, root, path)) for each in wanted]
        if all(failures):
            yield f"{path}: fits none: {min(failures, key=len)[0]}"

    def _oneOf(  # noqa: N802
        self, value: Json, wanted: Sequence[Schema], _schema: Schema, root: Json, path: str
    ) -> Iterator[str]:
        fitting = sum(self._fits(value, each, root) for each in wanted)
        if fitting != 1:
            yield f"{path}: fits {fitting} of {len(wanted)}"

    def _allOf(  # noqa: N802
        self, value: Json, wanted: Sequence[Schema], _schema: Schema, root: Json, path: str
    ) -> Iterator[str]:
        for each in wanted:
            yield from self.failures(value, each, root, path)
