"""Blocks as they are encoded, for those above the ledger who bring them: the engine's own."""

from foreblock._engine import Block, Header, Withdrawal, decode_block, transactions_root

__all__ = ["Block", "Header", "Withdrawal", "decode_block", "transactions_root"]
