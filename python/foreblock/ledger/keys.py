"""Secret keys, for those above the ledger who sign: the engine's functions, as they are."""

from foreblock._engine import address_of, public_key, sign_transaction

__all__ = ["address_of", "public_key", "sign_transaction"]
