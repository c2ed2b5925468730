"""Run the command line as ``python -m foreblock``."""

from foreblock.cli import main

main()
