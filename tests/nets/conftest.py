"""Checks of packets are those of the tests beside."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "packets"))
