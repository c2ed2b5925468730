"""Settings and networks become processes."""
