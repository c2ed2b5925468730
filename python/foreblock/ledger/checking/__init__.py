"""Check a store by computing its data again; nothing is written."""
