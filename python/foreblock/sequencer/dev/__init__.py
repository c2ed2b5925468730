"""The modes of a development chain, and the commands that change it."""
