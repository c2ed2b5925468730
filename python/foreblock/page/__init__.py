"""The page that a browser gets: files without a build step, which ask the service like any client.

What is in them is described in `docs/page.md`.
"""
