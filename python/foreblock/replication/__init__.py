"""Networks of many machines: one writes the log, others stand by or follow it."""
