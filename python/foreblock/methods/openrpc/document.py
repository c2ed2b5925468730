"""The OpenRPC document of a service, made from its table of methods.

A method's summary is the first line of the docstring of its function; its parameters and result
come from its signature. The shapes that signatures name are components of the document.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from inspect import getdoc
from typing import Final

from foreblock.methods.openrpc.schemas import SCHEMAS
from foreblock.methods.openrpc.signatures import Parameter, read_signature
from foreblock.methods.table import Family, Method

OPENRPC: Final = "1.3.2"
TITLE: Final = "foreblock"
ABOUT: Final = "JSON-RPC reads of a chain whose pending block is real."

Json = dict[str, object]


def make_document(families: Sequence[Family], *, block_required: bool) -> Json:
    """The document of these families, for a dialect that requires blocks or one that does not."""
    methods = [
        _describe(method, family.title, block_required=block_required)
        for family in families
        for method in family.methods
    ]
    return {
        "openrpc": OPENRPC,
        "info": {"title": TITLE, "version": version("foreblock"), "description": ABOUT},
        "methods": methods,
        "components": {"schemas": _components(methods)},
    }


def _describe(method: Method, family: str, *, block_required: bool) -> Json:
    signature = read_signature(method.signature)
    shape = signature.result
    return {
        "name": signature.name,
        "summary": summary_of(method),
        "tags": [{"name": family}],
        "paramStructure": "by-position",
        "params": [
            _describe_parameter(each, required=each.required(block_required=block_required))
            for each in signature.parameters
        ],
        "result": {"name": shape.name[0].lower() + shape.name[1:], "schema": shape.schema},
    }


def _describe_parameter(parameter: Parameter, *, required: bool) -> Json:
    schema = parameter.shape.schema
    if not required:
        schema = {"anyOf": [schema, {"type": "null"}]}
    return {"name": parameter.name, "required": required, "schema": schema}


def summary_of(method: Method) -> str:
    """The first line of the docstring of a method's function."""
    return (getdoc(method.run) or "").partition("\n")[0]


def _components(methods: Sequence[Json]) -> Mapping[str, object]:
    """The shapes that methods name, and those that these name in turn."""
    found: dict[str, object] = {}
    wanted = list(references(methods))
    while wanted:
        name = wanted.pop()
        if name not in found and name in SCHEMAS:
            found[name] = SCHEMAS[name]
            wanted += references(SCHEMAS[name])
    return dict(sorted(found.items()))


def references(value: object) -> Iterator[str]:
    """The names of the components that a part of the document refers to."""
    match value:
        case {"$ref": str(path)}:
            yield re.sub(".*/", "", path)
        case dict():
            for member in value.values():
                yield from references(member)
        case list() | tuple():
            for item in value:
                yield from references(item)
        case _:
            pass
