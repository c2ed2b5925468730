"""The networks of the writer process: one source, one thread and one store each."""
