"""`foreblock watch`: networks of an instance, live in a terminal."""
