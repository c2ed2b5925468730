"""How a chain begins: the files that state it, read strictly, and written for others."""
