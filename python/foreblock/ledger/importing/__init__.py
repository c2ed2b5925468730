"""Chains from files: verified block by block, and stored."""
