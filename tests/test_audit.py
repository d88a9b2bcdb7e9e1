"""What `.ci/audit` makes of known weaknesses of dependencies."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "weaknesses.py"
WEAK = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["2.0"]}

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="only in a checkout")


def audited(tmp_path, vulns, excuses, *others):
    """Exit code and output for one dependency with these weaknesses, beside others."""
    found = [{"name": "lib", "version": "1.0", "vulns": vulns}, *others]
    (tmp_path / "found.json").write_text(json.dumps({"dependencies": found}))
    (tmp_path / "excused.toml").write_text(excuses)
    files = (str(tmp_path / "found.json"), str(tmp_path / "excused.toml"))
    done = subprocess.run([sys.executable, SCRIPT, *files], capture_output=True, text=True)
    return done.returncode, done.stdout


def test_a_known_weakness_fails_unless_it_is_excused_with_a_reason(tmp_path):
    code, said = audited(tmp_path, [WEAK], "")
    assert code == 1 and "lib 1.0: PYSEC-1, mended in 2.0\n" in said
    assert audited(tmp_path, [WEAK], 'PYSEC-1 = ""')[0] == 1
    assert audited(tmp_path, [WEAK], 'PYSEC-2 = "another"')[0] == 1
    code, said = audited(tmp_path, [WEAK], 'CVE-1 = "not called here"')
    assert code == 0 and "(excused: not called here)" in said
    assert audited(tmp_path, [], "")[0] == 0


def test_an_excuse_that_no_longer_applies_is_named(tmp_path):
    code, said = audited(tmp_path, [], 'PYSEC-1 = "not called here"')
    assert code == 1 and "PYSEC-1 is excused and not there" in said
    unknown = {"name": "other", "skip_reason": "the service cannot be reached"}
    code, said = audited(tmp_path, [], 'PYSEC-1 = "not called here"', unknown)
    assert code == 0 and "1 of 2 dependencies" in said
