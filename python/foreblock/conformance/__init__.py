"""Replay published request and reply cases against an endpoint.

    cases      files to cases
    dialects   the reply that a dialect promises instead of the published one
    compare    two JSON values to the places where they differ
    replay     cases and an endpoint, or a service of our own, to outcomes

Everything except `replay` is free of I/O. No case is skipped silently: a method that an endpoint
does not serve is an outcome of its own.
"""
