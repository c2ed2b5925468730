"""`foreblock status`: the status and health of a running instance."""
