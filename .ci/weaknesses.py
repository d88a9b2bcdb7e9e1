"""Judge what an audit found: `weaknesses.py FOUND EXCUSED`, the JSON of pip-audit and a TOML file.

Ends with 1 if a weakness is known that nothing excuses, or if an excuse no longer applies. What
could not be audited is counted, and fails nothing.
"""

import json
import sys
import tomllib
from pathlib import Path


def judge(found: str, excused: str) -> int:
    """Print what is known; the exit code."""
    try:
        dependencies = json.loads(Path(found).read_text())["dependencies"]
    except (OSError, ValueError):
        dependencies = []
    excuses = tomllib.loads(Path(excused).read_text())
    audited = [each for each in dependencies if "skip_reason" not in each]
    known = [(each, one) for each in audited for one in each["vulns"]]
    print(f"Known weaknesses: {len(known)} in {len(audited)} of {len(dependencies)} dependencies")
    if len(audited) < len(dependencies) or not dependencies:
        print("  the others not audited: the service cannot be reached, or does not have them")
    wrong = 0
    for each, one in known:
        fixed = ", ".join(one["fix_versions"]) or "no version"
        line = f"{each['name']} {each['version']}: {one['id']}, mended in {fixed}"
        reasons = [
            excuses[name] for name in (one["id"], *one.get("aliases", ())) if excuses.get(name)
        ]
        print(f"  {line}" + (f" (excused: {reasons[0]})" if reasons else ""))
        wrong += not reasons
    if audited and len(audited) == len(dependencies):
        present = {name for _, one in known for name in (one["id"], *one.get("aliases", ()))}
        for name in excuses.keys() - present:
            print(f"  {name} is excused and not there: take it out of {excused}")
            wrong += 1
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(judge(*sys.argv[1:]))
