"""The status of networks, as data, text and metrics."""
