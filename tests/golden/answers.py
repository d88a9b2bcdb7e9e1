"""Answers of the command line, kept and compared.

`python -m tests.golden.answers` compares every command (14 minutes on two cores); `--write` keeps
the answers anew; words after it name the commands by what they contain.
"""

import argparse
import json
import math
import shlex
import sys
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.golden.commands import commands

FOLDER = Path(__file__).parent / "kept"
RELATIVE = 1e-9
SAMPLES = 12


def ask(command: str) -> tuple[str, dict[str, Any]]:
    """A command with its exit code, JSON, and lines of standard error."""
    from typer.testing import CliRunner

    from fluidcc.cli import run
    from fluidcc.cli.app import app

    run.EVERY = 1e6  # slow machines report no more than others
    result = CliRunner().invoke(app, [*shlex.split(command), "--json"])
    return command, {
        "exit": result.exit_code,
        "json": thin(json.loads(result.stdout)) if result.stdout else None,
        "stderr": result.stderr.splitlines(),
    }


def thin(value: Any) -> Any:
    """The same with its long lists of numbers thinned out to their length and `SAMPLES` of them."""
    if isinstance(value, dict):
        return {key: thin(own) for key, own in value.items()}
    if isinstance(value, list) and len(value) > 2 * SAMPLES:
        picked = [round(k * (len(value) - 1) / (SAMPLES - 1)) for k in range(SAMPLES)]
        return [len(value), *(thin(value[k]) for k in picked)]
    return [thin(own) for own in value] if isinstance(value, list) else value


def path_of(command: str) -> Path:
    """Where the answers of a verb are kept."""
    return FOLDER / f"{command.split()[0]}.json"


def kept() -> dict[str, Any]:
    """All answers that are kept, by their command."""
    return {
        command: answer
        for path in sorted(FOLDER.glob("*.json"))
        for command, answer in json.loads(path.read_text(encoding="utf-8")).items()
    }


def keep(answers: dict[str, Any]) -> None:
    """Write answers, one line each."""
    FOLDER.mkdir(exist_ok=True)
    for path in {path_of(command) for command in answers}:
        own = [c for c in answers if path_of(c) == path]
        lines = [f"{json.dumps(c)}: {json.dumps(answers[c], ensure_ascii=False)}" for c in own]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def differences(new: Any, old: Any, where: str = "", scale: float = 0.0) -> Iterator[str]:
    """Each place in which two answers differ; numbers of a list are held against its largest."""
    if isinstance(new, dict) and isinstance(old, dict) and list(new) == list(old):
        for key in old:
            yield from differences(new[key], old[key], f"{where}.{key}")
    elif isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        numbers = [abs(v) for v in old if _is_number(v)]
        for k, (a, b) in enumerate(zip(new, old, strict=True)):
            yield from differences(a, b, f"{where}[{k}]", max(numbers, default=0.0))
    elif _is_number(new) and _is_number(old):
        if not math.isclose(new, old, rel_tol=RELATIVE, abs_tol=RELATIVE * max(scale, 1e-3)):
            yield f"{where}: {new!r}, kept {old!r}"
    elif new != old:
        yield f"{where}: {json.dumps(new)[:300]}, kept {json.dumps(old)[:300]}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def main() -> int:
    """Compare answers with those that are kept, or keep them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the answers")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("words", nargs="*", help="only commands that contain one of these")
    options = parser.parse_args()
    chosen = [c for c in commands() if not options.words or any(w in c for w in options.words)]
    old, failed = kept(), 0
    # few commands for each process: what they compile stays in its memory
    with get_context("spawn").Pool(options.workers, maxtasksperchild=6) as pool:
        for command, answer in pool.imap_unordered(ask, chosen):
            if options.write:
                old[command] = answer
                verb = path_of(command)
                keep({c: old[c] for c in commands() if c in old and path_of(c) == verb})
                print(f"{answer['exit']} {command}", flush=True)
                continue
            found = list(differences(answer, old.get(command)))
            failed += bool(found)
            word = "differs" if found else "equal"
            print(f"{word}: {command}", *found[:20], sep="\n  ", flush=True)
    print(f"{len(chosen)} commands, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
