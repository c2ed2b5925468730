"""Run by every interpreter whose path has this folder: processes with one defect.

Only `replicas.mutations` adds it to the path, and names the defect.
"""

import os

from replicas.mutated.mutants import MUTANTS

MUTANTS[os.environ["FOREBLOCK_TEST_MUTATION"]]()
