"""Signatures of methods, taken apart: names, shapes and marks (`methods/table.py`)."""

import re
from typing import Final, NamedTuple

_SIGNATURE: Final = re.compile(r"([\w.]+)\((.*)\) -> (\S+)")


class Shape(NamedTuple):
    """A named shape, and the suffixes after it from left to right: `[]` and `?`."""

    name: str
    suffixes: tuple[str, ...]

    @property
    def schema(self) -> dict[str, object]:
        """The JSON Schema, which refers to the component of that name."""
        schema: dict[str, object] = {"$ref": f"#/components/schemas/{self.name}"}
        for suffix in self.suffixes:
            if suffix == "[]":
                schema = {"type": "array", "items": schema}
            else:
                schema = {"anyOf": [schema, {"type": "null"}]}
        return schema


class Parameter(NamedTuple):
    """One parameter; its mark is `?`, `!` or empty."""

    name: str
    mark: str
    shape: Shape

    def required(self, *, block_required: bool) -> bool:
        """Whether it must be given, in a dialect that requires blocks or in one that does not."""
        return not self.mark or (self.mark == "!" and block_required)


class Signature(NamedTuple):
    """What a method takes and gives."""

    name: str
    parameters: tuple[Parameter, ...]
    result: Shape


def read_signature(text: str) -> Signature:
    """A signature from the table; `ValueError` for a text that is none."""
    match = _SIGNATURE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a signature: {text}")
    parameters = tuple(map(_read_parameter, match[2].split(", "))) if match[2] else ()
    return Signature(match[1], parameters, _read_shape(match[3]))


def _read_parameter(text: str) -> Parameter:
    name, _, shape = text.partition(": ")
    mark = name[-1] if name.endswith(("?", "!")) else ""
    return Parameter(name.removesuffix(mark), mark, _read_shape(shape))


def _read_shape(text: str) -> Shape:
    match = re.fullmatch(r"([A-Z]\w*)((?:\[\]|\?)*)", text)
    if match is None:
        raise ValueError(f"not a shape: {text}")
    return Shape(match[1], tuple(re.findall(r"\[\]|\?", match[2])))
