"""A JSON-RPC read service for layer-2 chains whose pending block is real."""

from importlib.metadata import version

__version__ = version("foreblock")
