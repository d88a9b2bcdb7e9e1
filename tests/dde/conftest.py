"""The problems with known answers, which live with the validation scripts."""

import importlib.util
import sys
from pathlib import Path

_PATH = Path(__file__).parents[2] / "validation" / "dde_problems.py"
_SPEC = importlib.util.spec_from_file_location("dde_problems", _PATH)
_MODULE = importlib.util.module_from_spec(_SPEC)
sys.modules["dde_problems"] = _MODULE
_SPEC.loader.exec_module(_MODULE)
