"""How a worker shares its time: one scheduler for all its networks (start with `scheduler`)."""
