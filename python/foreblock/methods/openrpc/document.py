"""The OpenRPC document of a service, made from its table of methods.

A method's summary is the first line of the docstring of its function; its parameters and result
come from its signature. The shapes that signatures name are components of the document.
"""

from collections.abc import Sequence
from inspect import getdoc
from typing import Final

import foreblock
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
        "info": {"title": TITLE, "version": foreblock.__version__, "description": ABOUT},
        "methods": methods,
        "components": {"schemas": SCHEMAS},
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
