"""Run by every interpreter whose path has this folder: processes with one thing wrong.

Only `replicas.mutations` puts it there, and names what is to be wrong.
"""

import os

from replicas.mutated.mutants import MUTANTS

MUTANTS[os.environ["FOREBLOCK_TEST_MUTATION"]]()
