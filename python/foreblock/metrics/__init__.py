"""Metrics: what is counted, where the counts are kept, and their text for Prometheus."""
