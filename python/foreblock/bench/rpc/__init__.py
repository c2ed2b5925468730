"""The cost of a request, beside other servers on the same machine.

    chain       one chain for all: accounts, a contract, a block of 200 transfers
    questions   requests, and the limits of their cost
    simulations requests of eth_simulateV1
    peers       how each server is found, started and given the chain
    processes   CPU time of a server with all its processes
    load        wrk, and the scripts it runs
    rounds      one measurement, and when it does not count
    answers     all of it, interleaved
    counting    a server whose worker runs under valgrind, which counts its instructions
    in_step     clients that send and read in step
    instructions all of it, counted instead of timed
    deliveries  notifications of subscriptions: rows, rounds, figures
    growing     servers whose chains grow
    subscriber  the client that takes the times of a delivery
    subscription its WebSocket connection

Servers and the load generator have a core each. The figure is CPU time of the server per
request; requests a second stand beside it. Instructions per request need no quiet machine.
"""
