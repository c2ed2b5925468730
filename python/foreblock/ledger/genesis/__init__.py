"""How a chain begins: the files that describe it, read strictly, and written for followers."""
