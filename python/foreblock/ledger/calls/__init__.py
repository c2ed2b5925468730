"""Calls: the request, the checks before it runs, overrides, the run, and gas estimates."""
