"""Traces: transactions of blocks replayed, and calls, under the eyes of a tracer."""
