"""The store as Python uses it: byte layouts of rows, opening, copying, pruning, watching."""
