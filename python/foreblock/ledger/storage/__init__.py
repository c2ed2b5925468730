"""What Python keeps in a store: rows to the byte, how a store is opened, copied and pruned."""
