"""Feeds in files: written as they come, and served again at any speed."""
