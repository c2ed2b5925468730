"""A JSON-RPC read service for layer-2 chains whose pending block is real."""


def __getattr__(name: str) -> str:
    """`__version__`, read on first use: that takes longer than all other imports."""
    if name != "__version__":
        raise AttributeError(name)
    from importlib.metadata import version  # noqa: PLC0415 - the point of it

    return version("foreblock")
