"""Latency of pre-confirmations: `foreblock dev` under load, with clients.

Every client is a process, and all times come from the monotonic clock that processes share. The
sequencer logs its own times; the clients report what they observed. Measured code imports nothing
from here.
"""
