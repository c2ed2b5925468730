"""rpc.discover, rpc_modules: the methods that this service offers, as an OpenRPC document.

The document is made on its first request, and kept: it is equal for all views.
"""

import re
from collections.abc import Awaitable, Sequence
from inspect import getdoc
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

import foreblock
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.openrpc.schemas import SCHEMAS
from foreblock.methods.params import take_none
from foreblock.methods.table import Family, Method
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.settings import Settings

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
        """Return whether it is required; `block_required` is of the dialect."""
        return not self.mark or (self.mark == "!" and block_required)


class Signature(NamedTuple):
    """The parameters and the result of a method."""

    name: str
    parameters: tuple[Parameter, ...]
    result: Shape


def read_signature(text: str) -> Signature:
    """Parse a signature of the table; raises `ValueError`."""
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


MODULE_VERSION = "1.0"  # the description that geth has for all of them


class Discovery:
    """Methods about the table of methods."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self.families: Sequence[Family] = ()  # set once they are all made
        self._block_required = settings.block_required
        self._scheduler = scheduler
        self._document: bytes | None = None

    def discover(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """This document: every method with its parameters and its result (OpenRPC)."""
        take_none(raw)
        return self._scheduler.coalesce((self, "document"), self._described)

    def _described(self) -> Steps[Text]:
        if self._document is None:
            made = make_document(self.families, block_required=self._block_required)
            yield None
            self._document = msgspec.json.encode(made)
        return self._document

    def modules(self, _view: LedgerView, raw: Raw) -> bytes:
        """The prefixes of the methods that are served, with a version each."""
        take_none(raw)
        methods = [method for family in self.families for method in family.methods]
        names = [name for method in methods for name in method.names]
        prefixes = sorted({name.partition("_")[0] for name in names if "_" in name})
        return msgspec.json.encode(dict.fromkeys(prefixes, MODULE_VERSION))


def openrpc_family(settings: Settings, scheduler: Scheduler, families: Sequence[Family]) -> Family:
    """The methods of this folder, about those of all families."""
    discovery = Discovery(settings, scheduler)
    family = Family(
        "What is offered",
        (
            Method("rpc_modules() -> Modules", discovery.modules),
            Method("rpc.discover() -> OpenRpcDocument", discovery.discover),
        ),
    )
    discovery.families = (*families, family)
    return family
