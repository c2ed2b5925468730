"""`foreblock import` in a long-lived process, which reads targets line by line.

Run as `python -m faults.imports GENESIS CHAIN`. A line is a folder; the response is the JSON of the
exit code and of the command's output.
"""

import json
import sys

from click.testing import CliRunner

from foreblock.cli import main


def run() -> None:
    genesis, chain = sys.argv[1:]
    for line in sys.stdin:
        options = ["import", "--genesis", genesis, "--chain", chain, "--data", line.rstrip("\n")]
        result = CliRunner().invoke(main, options)
        sys.stdout.write(json.dumps([result.exit_code, result.output]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    run()
