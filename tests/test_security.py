"""What reads files and text must not be able to run any: calls that could, and why each is sound.

A new one fails this test until its reason stands here.
"""

import ast
import re
from pathlib import Path

import pytest

import fluidcc
from fluidcc import Network, ScenarioError, bundled, load, loads

HOME = Path(fluidcc.__file__).parent
ROOTS = [HOME, *(Path(str(bundled.bundled(name))) for name in ("paper_figs", "validation"))]

NEVER = {
    "eval", "exec", "compile", "__import__", "parse_expr", "mktemp", "extract",
    "extractall", "unsafe_load", "execfile", "literal_eval", "Markup",
}  # fmt: skip
"""Calls that there are none of."""

SHELLS = {("os", "system"), ("os", "popen")}

READS = {"loads", "load"}
"""Calls that run what they read where they are those of these modules."""
RUN_WHAT_THEY_READ = {"pickle", "cloudpickle", "marshal", "dill", "joblib", "yaml", "shelve"}

ALLOWED = {
    ("sweep/workers.py", "pickle.loads"): "a job that the parent process sent over a pipe",
    ("executables.py", "pickle.loads"): "a file of the user's own folder, by its digest",
    ("executables.py", "compile"): "a program that JAX has lowered",
    ("loops.py", "load"): "numbers of a file of the user's own folder, by its digest",
    ("kept_modules.py", "exec_module"): "a module whose text is made from the laws, by its digest",
    ("lab/bound.py", "sympify"): "expressions that the bound's own code makes",
    ("packets/compile.py", "sympify"): "what a law gave for symbols",
    ("laws/symbolic.py", "sympify"): "what a law gave for symbols",
    ("programs.py", "sympify"): "what a law gave for symbols",
    ("claims/ecn_mod/rules_of_windows.py", "sympify"): "what a law gave for symbols",
    ("claims/rwm/mechanism.py", "sympify"): "what a law gave for symbols",
    ("recording.py", "exec"): "operations of NumPy with names and literals of its own",
    ("laws/own.py", "exec"): "a file of laws that the user named, never a scenario",
    ("laws/own.py", "compile"): "a file of laws that the user named, never a scenario",
}
"""File and call: what it is given, which is never text of a user."""


def _calls(tree):
    """Every call by the last part of its name, with what it is an attribute of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id, "", node
            elif isinstance(node.func, ast.Attribute):
                owner = node.func.value
                yield node.func.attr, owner.id if isinstance(owner, ast.Name) else "?", node


def _risks(tree):
    """Calls that could run text or data that somebody else wrote."""
    for name, owner, node in _calls(tree):
        keywords = {k.arg: getattr(k.value, "value", None) for k in node.keywords}
        if (name in NEVER and (owner, name) != ("re", "compile")) or (owner, name) in SHELLS:
            yield name
        if name in READS and owner in RUN_WHAT_THEY_READ:
            yield f"{owner}.{name}"
        if name in ("sympify", "S", "exec_module") or (name == "load" and owner in ("np", "numpy")):
            yield name
        if keywords.get("shell") or keywords.get("allow_pickle"):
            yield f"{name}(shell or pickle)"
        if name == "Environment" and keywords.get("autoescape") is not True:
            yield "Environment without autoescape"


def _found():
    return {
        (file.relative_to(root).as_posix(), risk)
        for root in ROOTS
        for file in root.rglob("*.py")
        if "_bundled" not in file.relative_to(root).parts
        for risk in _risks(ast.parse(file.read_text(encoding="utf-8")))
    }


def test_every_call_that_could_run_what_it_reads_has_its_reason():
    assert _found() == set(ALLOWED)


@pytest.mark.parametrize(
    "code",
    ["eval(text)", "pickle.load(file)", "yaml.load(text)", "np.load(f, allow_pickle=True)",
     "sp.sympify(text)", "subprocess.run(text, shell=True)", "os.system(text)",
     "jinja2.Environment(loader=l)"],
)  # fmt: skip
def test_such_calls_are_seen(code):
    assert list(_risks(ast.parse(code)))


def test_pages_escape_what_they_are_given():
    """But for what is put between links, and equations that come from the laws."""
    unescaped = [
        found
        for root in ROOTS
        for page in root.rglob("*.html")
        for found in re.findall(r"(\S+)\s*\|\s*safe\b", page.read_text(encoding="utf-8"))
    ]
    assert unescaped == ["between", "scenario.equations"]


CODE = "__import__('os').abort()"


@pytest.mark.parametrize(
    "path",
    ["title", "links.a.capacity", "links.a.queue.law", "flows.b.n", "flows.b.rtt",
     "flows.b.window.law", "flows.b.feedback", "flows.b.sender.tick", "flows.b.route"],
)  # fmt: skip
def test_text_of_a_scenario_is_never_run(path):
    """Code as a value is a title, or a fault."""
    text = (
        '[links.a]\ncapacity = 1\nqueue = { law = "droptail" }\n'
        '[flows.b]\nn = 1\nrtt = 1\nwindow = { law = "reno" }\n'
    )
    assert isinstance(loads(text), Network)
    *table, key = path.split(".")
    head = f"[{'.'.join(table[:2])}]\n" if table else ""
    inner = f"{table[2]}.{key}" if len(table) > 2 else key
    kept = [line for line in text.splitlines() if not line.startswith((key, *table[2:]))]
    spoiled = "\n".join(kept).replace(head.strip(), f'{head}{inner} = "{CODE}"')
    if path == "title":
        assert loads(f'title = "{CODE}"\n{text}').title == CODE
    else:
        with pytest.raises(ScenarioError, match="__import__"):
            loads(spoiled)


@pytest.mark.parametrize("name", ["..", "../x", "a/b", "/x", ".", "", "a\\b", "a\n", "x" * 101])
@pytest.mark.parametrize("kind", ["links", "flows"])
def test_names_that_could_lead_anywhere_are_refused(kind, name):
    with pytest.raises(ScenarioError, match=f"{kind}: expected names of at most 100 letters"):
        loads(f"{kind} = {{ {ascii(name).replace(chr(39), chr(34))} = {{}} }}")


def test_a_bundled_name_leads_to_bundled_files_only(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("hollot2001/../../pyproject", "hollot2001/../hollot2001/slow"):
        with pytest.raises(ScenarioError, match="a file, or a bundled scenario"):
            load(name)
