"""`foreblock cluster`: a whole cluster on one machine."""
