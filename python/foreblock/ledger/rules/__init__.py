"""The rules of blocks: values in, a value or `BadBlock` out.

Nothing here reads a file, a clock or a store.
"""
