"""What users may do to a development chain: its modes, and commands that change it."""
