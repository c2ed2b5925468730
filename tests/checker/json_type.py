"""The type of a value that came out of JSON."""

from typing import Any

Json = Any
