"""Replay published request and reply cases against an endpoint.

    cases      files to cases
    dialects   the reply that a dialect promises instead of the published one
    compare    two JSON values to the places where they differ
    replay     cases and an endpoint to outcomes
    service    a service of our own over the chain beside the cases

Everything but `replay` and `service` takes values and gives values. No case is skipped
silently: a method that an endpoint does not serve is an outcome of its own.
"""
