"""The example is imported as its users do it, from the folder that has it."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
# The second is for `procedure`, which several of these tests compare with.
for folder in (HERE.parents[2] / "examples", HERE):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
