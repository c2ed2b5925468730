"""The cost of a request, beside other servers on the same machine.

    chain         one chain for all servers: accounts, a contract, a block of 200 transfers
    questions     requests, their expected results, and the limits of their cost
    peers         how each server is found, started, given the chain and metered
    rounds        one measurement under load, and whether it counts
    answers       all measurements, interleaved
    instructions  all requests, counted under valgrind instead of timed
    deliveries    notifications of subscriptions: servers, rounds, figures
    subscriber    the client that times a delivery

Servers and the load generator have a core each. The figure is CPU time of the server per
request, with requests per second beside it. Instructions per request need no quiet machine.
"""
