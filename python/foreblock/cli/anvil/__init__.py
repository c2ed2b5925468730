"""`foreblock dev --like anvil`: a chain with anvil's flags, methods and defaults."""
