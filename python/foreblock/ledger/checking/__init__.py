"""A store computed again from what it holds, to find damage; nothing is written."""
