"""What requests see above `latest`, decided once for each request.

Everybody may name `pending`, or pin a flashblock by its place. The question is what is shown
of pre-confirmed blocks to a request that does not: a receipt by the hash of its transaction,
a block by a hash or by its number.
"""

from typing import Final

from msgspec import Struct


class Visibility(Struct, frozen=True):
    """What a view shows that the request has not named as pending."""

    # Whether transactions, receipts and blocks above `latest` are found by their hashes.
    preconfirmed: bool = True
    # Whether the number of the block in progress means it; otherwise it is not found.
    by_number: bool = False


PRECONFIRMED: Final = Visibility()
SEALED: Final = Visibility(preconfirmed=False)
