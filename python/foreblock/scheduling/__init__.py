"""How a worker shares its time: slices of the loop, a fair queue, threads, deadlines, room for answers."""
