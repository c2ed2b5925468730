"""Public chains as data: what following one needs to know that no endpoint says.

Each preset is a file in `presets`; `--chain FILE` takes a file of the same form.
"""
