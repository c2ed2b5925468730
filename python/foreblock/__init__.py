"""A JSON-RPC read service for layer-2 chains whose pending block is real."""

TYPE_CHECKING = False  # type checkers take it as true; importing typing takes 10 ms
if TYPE_CHECKING:
    from foreblock.client import AsyncClient as AsyncClient
    from foreblock.client import Client as Client
    from foreblock.dev_chain import DevChain as DevChain

    __version__: str

# Public names, and the modules that have them: a module is imported when its name is used.
_LAZY = {
    "AsyncClient": "foreblock.client",
    "Client": "foreblock.client",
    "DevChain": "foreblock.dev_chain",
}


def __getattr__(name: str) -> object:
    """A public name, or `__version__`, which takes longer to read than all other imports."""
    if name in _LAZY:
        from importlib import import_module  # noqa: PLC0415 - the point of it

        return getattr(import_module(_LAZY[name]), name)
    if name != "__version__":
        raise AttributeError(name)
    from importlib.metadata import version  # noqa: PLC0415 - the point of it

    return version("foreblock")


def __dir__() -> list[str]:
    return [*globals(), *_LAZY, "__version__"]
