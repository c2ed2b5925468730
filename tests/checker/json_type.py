"""The type of a JSON value."""

from typing import Any

Json = Any
