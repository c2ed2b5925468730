"""`foreblock status`: what a running instance is, does and lacks."""
