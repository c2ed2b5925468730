"""Settings and networks to running processes: launch, worker, writer, logs."""
