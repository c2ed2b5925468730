"""Methods of published suites that are not served on purpose, with the reason for each.

The runner shows the reason beside the cases; a method that is missing without one is a gap.
"""

from typing import Final

# By what their names begin with.
REASONS: Final = (
    ("engine_", "the private interface of a consensus client, which has its own port"),
    ("testing_", "a block builder's private method"),
    ("admin_", "about peers, and there is no peer-to-peer network here"),
    ("miner_", "about mining, and nothing is mined here"),
)


def reason_for(method: str) -> str | None:
    """Why a method is not served; none if it should be."""
    return next((why for start, why in REASONS if method.startswith(start)), None)
