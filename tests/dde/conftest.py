"""Problems with known answers and an independent solver, which live with the validation scripts."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "validation"))
