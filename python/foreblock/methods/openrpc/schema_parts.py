"""Parts of JSON Schemas: texts by pattern, references, lists, and records of named shapes."""

from typing import Final

Schema = dict[str, object]

HEX: Final = "[0-9a-fA-F]"
ADDRESS_KEY: Final = f"^0x{HEX}{{40}}$"


def text(pattern: str, title: str) -> Schema:
    """A text that matches a pattern as a whole."""
    return {"type": "string", "pattern": f"^{pattern}$", "title": title}


def of_bytes(length: int, title: str) -> Schema:
    """This many bytes in hex."""
    return text(f"0x{HEX}{{{2 * length}}}", title)


def ref(name: str) -> Schema:
    """The component of this name."""
    return {"$ref": f"#/components/schemas/{name}"}


def array(name: str) -> Schema:
    """A list of a component."""
    return {"type": "array", "items": ref(name)}


def nullable(name: str) -> Schema:
    """A component, or null."""
    return {"anyOf": [ref(name), {"type": "null"}]}


def keyed(key: str, value: Schema) -> Schema:
    """An object whose keys match a pattern."""
    return {"type": "object", "patternProperties": {key: value}, "additionalProperties": False}


def record(required: str, optional: str = "", **others: Schema) -> Schema:
    """An object with these fields and no others, given as words `name:Shape`.

    `[]` after a shape means a list of it, `?` that it may be null. `others` are required fields
    whose shape has no name.
    """
    must = _fields(required) | others
    return {
        "type": "object",
        "properties": must | _fields(optional),
        "required": sorted(must),
        "additionalProperties": False,
    }


def _fields(words: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    for word in words.split():
        name, _, shape = word.partition(":")
        if shape.endswith("?"):
            fields[name] = nullable(shape[:-1])
        else:
            fields[name] = array(shape[:-2]) if shape.endswith("[]") else ref(shape)
    return fields
