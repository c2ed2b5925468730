"""`foreblock log`: the log that replicates a network to many machines."""
