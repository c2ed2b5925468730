"""The start of a chain: the files that describe it, read strictly, and written for followers."""
