"""Latency of pre-confirmations: `foreblock dev` under load, with clients.

Every client is a process, and all times are of the monotonic clock that processes share. The
sequencer logs its own times; the clients report what they saw. Measured code imports nothing
from here.
"""
