"""Calls: the request, the checks before it runs, the run, gas estimates, and simulations."""
