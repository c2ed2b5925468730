"""How a worker shares its time: slices of the loop, fair queues, threads, room for answers."""
