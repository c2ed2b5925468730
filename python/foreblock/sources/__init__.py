"""What the writer process does for each network: one source, one thread, one store."""
