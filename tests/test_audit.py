"""What `.ci/audit` makes of known weaknesses of dependencies."""

import json
import os
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


@pytest.mark.parametrize("vulns", [[WEAK], []])
def test_the_audit_ends_with_the_verdict(tmp_path, vulns):
    """With the service's answer in place of the service."""
    answer = json.dumps({"dependencies": [{"name": "lib", "version": "1.0", "vulns": vulns}]})
    tools = {
        "uvx": f"echo '{answer}'\nexit {len(vulns)}",
        "uv": f'[ "$1" = run ] || exit 0\nshift 4\nexec {sys.executable} "$@"',
    }
    for name, does in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([SCRIPT.with_name("audit")], env=env, capture_output=True, text=True)
    assert done.returncode == len(vulns)
    assert ("lib 1.0: PYSEC-1, mended in 2.0\n" in done.stdout) == bool(vulns)
