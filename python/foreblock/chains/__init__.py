"""Public chains as data: the facts that following one needs and no endpoint returns.

Each preset is a file in `presets`; `--chain FILE` takes a file of the same form.
"""
