"""The log: every commit of a network, in one NATS stream, in the order in which it was made.

A writer appends a commit before its own store has it, and replicas apply what the log has, so
every store is a prefix of the log. `docs/design/log.md` has the formats and the rules.
"""
