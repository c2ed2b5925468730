"""Transactions that are sent and wait."""

from foreblock.methods.pool.sending import SendMethods, Submissions
from foreblock.methods.table import Family, Method


def pool_family(submissions: Submissions) -> Family:
    """The methods of this folder."""
    return Family(
        "Sending transactions",
        (
            Method(
                "eth_sendRawTransaction(transaction: Data) -> Hash",
                SendMethods(submissions).send_raw_transaction,
            ),
        ),
    )
