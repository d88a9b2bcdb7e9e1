"""User laws from Python files: loaded by the name of the file, never by a scenario."""

import ast
import contextlib
import dataclasses
import hashlib
import inspect
import linecache
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import fluidcc.laws
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.folders import read_file
from fluidcc.laws.law import KINDS, Law, taken_symbols
from fluidcc.laws.registry import (
    BASES,
    CLOSED,
    LAWS,
    SHAPES,
    faults_of,
    own_laws,
    register,
    restore,
)
from fluidcc.module import Module

_PREFIX = "law_file_"


class LawFile(NamedTuple):
    """A file with laws as it was read, and the module that it became."""

    path: str
    text: str
    module: str

    @property
    def digest(self) -> str:
        """Hash of the text (SHA-256, hexadecimal)."""
        return hashlib.sha256(self.text.encode()).hexdigest()


_files: dict[str, LawFile] = {}  # by module


def load_laws(path: str | os.PathLike[str]) -> tuple[type[Law], ...]:
    """Add every law that a Python file defines; they replace those of an earlier reading.

    Classes whose names begin with Abstract or _ are left out. The file stands alone: it may import
    installed packages, but no other file in its folder.

    Returns
    -------
    tuple of classes
        The laws of the file, registered.

    Raises
    ------
    ScenarioError
        With every fault of the file and its laws, each with the line. Nothing is added then.

    Examples
    --------
    >>> import fluidcc as fc
    >>> try:
    ...     fc.load_laws("no_such_law.py")
    ... except fc.ScenarioError as error:
    ...     print(error)
    no_such_law.py: expected a Python file with a law, got no such file
    """
    where = os.fspath(path)
    try:
        text = read_file(where, "a file with a law (Python, UTF-8 text)")
    except FileNotFoundError:
        raise _faulty(where, "a Python file with a law", "no such file") from None
    place = hashlib.sha256(str(Path(where).resolve()).encode()).hexdigest()[:12]
    return _added(LawFile(where, text, f"{_PREFIX}{place}"))


def _faulty(where: str, expected: str, got: str, key: str = "") -> ScenarioError:
    return ScenarioError([Fault(where, key, expected, got)])


def _added(file: LawFile) -> tuple[type[Law], ...]:
    """Run the text of a file and add its laws, all or none."""
    before, former = own_laws(), sys.modules.get(file.module)
    try:
        laws = _laws_in(file, _executed(file))
        restore([law for law in before if law.__module__ != file.module])
        _register(file, laws)
    except BaseException:
        restore(before)
        if former is None:
            sys.modules.pop(file.module, None)
        else:
            sys.modules[file.module] = former
        raise
    _files[file.module] = file
    return laws


def _register(file: LawFile, laws: Sequence[type[Law]]) -> None:
    try:
        for law in laws:
            register(law)
    except ScenarioError as error:
        raise ScenarioError(_at(file, fault) for fault in error.faults) from None


def _executed(file: LawFile) -> ModuleType:
    module = ModuleType(file.module)
    module.__file__ = file.path
    vars(module)["__digest__"] = file.digest  # executables of its laws are kept by it
    lines = file.text.splitlines(keepends=True)
    linecache.cache[file.path] = (len(file.text), None, lines, file.path)
    sys.modules[file.module] = module  # dataclasses and pickles look there
    try:
        exec(compile(file.text, file.path, "exec"), module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _stopped(file, error) from None
    return module


def _stopped(file: LawFile, error: BaseException) -> ScenarioError:
    """The error that ended the reading of a file, with its line."""
    if isinstance(error, SyntaxError) and error.filename == file.path:
        return _faulty(f"{file.path}, line {error.lineno}", "Python", f"{error.msg}")
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file.path]
    where = f"{file.path}, line {lines[-1]}" if lines else file.path
    if isinstance(error, ImportError):
        expected = "imports of installed packages alone (a law file stands by itself)"
        return _faulty(where, expected, f"{error}")
    message = f"{type(error).__name__}: {error}"
    key = _member_at(file.text, lines[-1] or 0) if lines else ""
    function, given, missing = str(error).partition("() missing ")
    if isinstance(error, TypeError) and given and function in SHAPES:
        return _faulty(where, SHAPES[function], f"it without {missing.partition(': ')[2]}", key)
    return _faulty(where, "a file that can be run", message, key)


def _laws_in(file: LawFile, module: ModuleType) -> tuple[type[Law], ...]:
    """Classes of laws that the file defines; raises ScenarioError with all their faults."""
    classes = [
        thing for thing in vars(module).values()
        if inspect.isclass(thing) and thing.__module__ == file.module
    ]  # fmt: skip
    known = (*BASES.values(), *CLOSED)
    left_out = ("Abstract", "_")
    laws = [c for c in classes if issubclass(c, known) and not c.__name__.startswith(left_out)]
    laws = list(dict.fromkeys(laws))
    if not laws:
        bases = ", ".join(base.__name__ for base in BASES.values())
        names = ", ".join(c.__name__ for c in classes) or "no class"
        raise _faulty(file.path, f"a class below one of {bases}", names)
    unfit = [fault for law in laws for fault in faults_of(law)]
    if unfit:
        raise ScenarioError(_at(file, fault) for fault in unfit)
    return tuple(laws)


def _at(file: LawFile, fault: Fault) -> Fault:
    """A fault of a class with the line of the faulty part in the file, unless it has one."""
    if fault.where:
        return fault
    name, _, part = fault.key.partition(".")
    line = line_of(file.text, name, part)
    return dataclasses.replace(fault, where=f"{file.path}, line {line}" if line else file.path)


def _members(text: str) -> Iterator[tuple[str, str, ast.stmt]]:
    """The name of a class, and that of a field or method of it, with its statement in the text; of
    the class itself, last, without the latter.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                for target in getattr(inner, "targets", [getattr(inner, "target", inner)]):
                    name = getattr(target, "id", getattr(target, "name", ""))
                    yield node.name, name, inner
            yield node.name, "", node


def line_of(text: str, name: str, part: str = "") -> int | None:
    """Line of a class in Python text, or of the field or method `part` of it."""
    found = {member: node.lineno for owner, member, node in _members(text) if owner == name}
    return found.get(part, found.get(""))


def _member_at(text: str, line: int) -> str:
    """The class and its member at a line of Python text; empty outside of classes."""
    found = (
        f"{owner}.{member}" if member else owner
        for owner, member, node in _members(text)
        if node.lineno <= line <= (node.end_lineno or line)
    )
    return next(found, "")


@contextlib.contextmanager
def loaded(paths: Sequence[str | os.PathLike[str]]) -> Iterator[None]:
    """Laws of these files, as long as the context lasts."""
    laws, files = own_laws(), dict(_files)
    try:
        for path in paths:
            load_laws(path)
        yield
    finally:
        restore(laws)
        _files.clear()
        _files.update(files)


def files() -> tuple[LawFile, ...]:
    """Files whose laws are added, in the order of their paths."""
    return tuple(sorted(_files.values()))


_SKELETONS = Path(__file__).parent / "skeletons"
_STEM = re.compile(r"[a-z][a-z0-9_]*")


def write_skeleton(kind: str, file: Path) -> None:
    """Write a file with a law of a kind to begin with, whose name follows from the file's.

    Raises ScenarioError, with every fault, for a kind that has none, a file that exists, and one
    whose name cannot be that of a law; and OSError if it cannot be written.
    """
    faults, stem = [], file.stem
    kinds = sorted(skeleton.stem for skeleton in _SKELETONS.glob("*.py"))
    if kind not in kinds:
        faults.append(Fault("KIND", "", f"one of {', '.join(kinds)}", f"{kind!r}",
                            nearest(kind, kinds, 1)))  # fmt: skip
    name = "".join(part.capitalize() for part in stem.split("_"))
    taken = name.startswith("Abstract") or hasattr(fluidcc.laws, name)
    if file.suffix != ".py" or not _STEM.fullmatch(stem):
        expected = "a name such as my_law.py: small letters, digits and _, a letter first"
        faults.append(Fault("FILE", "", expected, f"'{file}'"))
    elif taken or stem in LAWS.get(kind, ()):
        expected = "another name, as fluidcc has this one"
        faults.append(Fault("FILE", "", expected, f"'{file}'"))
    if file.exists():
        faults.append(Fault("FILE", "", "a new file", f"'{file}', which exists"))
    elif not file.parent.is_dir():
        faults.append(Fault("FILE", "", "a file in a folder that exists", f"'{file}'"))
    if faults:
        raise ScenarioError(faults)
    text = (_SKELETONS / f"{kind}.py").read_text(encoding="utf-8")
    with file.open("x", encoding="utf-8") as written:
        taken_here = ", ".join(taken_symbols(KINDS[kind]))
        text = text.replace("TAKEN_SYMBOLS", taken_here)
        written.write(text.replace("MyLaw", name).replace("my_law", stem))


class Carried(NamedTuple):
    """Files with laws that a pickle carries: on reading they are added, in place of those of all
    other files.
    """

    files: tuple[LawFile, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _adopted, (self.files,)


def _adopted(wanted: tuple[LawFile, ...]) -> Carried:
    modules = {file.module for file in wanted}
    for module in set(_files) - modules:
        del _files[module]
    restore([law for law in own_laws() if not law.__module__.startswith(_PREFIX)
             or law.__module__ in modules])  # fmt: skip
    for file in wanted:
        if _files.get(file.module) != file:
            _added(file)
    return Carried(wanted)


class Origin(NamedTuple):
    """Origin of user laws: a file, or an interactive definition, and the hash of the text."""

    name: str
    digest: str

    def __str__(self) -> str:
        return f"{self.name}, sha256 {self.digest}"


def origins(net: Any = None) -> list[Origin]:
    """Files whose laws are added, and laws of a network, or that it can name, from elsewhere."""
    known = {Origin(file.path, file.digest) for file in _files.values()}
    for law in (*laws_in(net), *own_laws()):
        if not law.__module__.startswith(("fluidcc.", _PREFIX)):
            name = f"{law.name} ({law.__module__}.{law.__qualname__})"
            known.add(Origin(name, hashlib.sha256(source_of(law).encode()).hexdigest()))
    return sorted(known)


def laws_in(thing: Any) -> tuple[type[Law], ...]:
    """Classes of the laws in a network, each once, those within laws after those around them."""
    outer = [type(thing)] if isinstance(thing, Law) else []
    inside = thing if isinstance(thing, tuple | list) else ()
    if isinstance(thing, Module):
        inside = tuple(getattr(thing, field.name) for field in dataclasses.fields(thing))  # type: ignore[arg-type]
    return tuple(dict.fromkeys(outer + [law for v in inside for law in laws_in(v)]))


def source_of(thing: Any) -> str:
    """Text of the module that defines a class or function, or of its notebook cell; empty if
    unknown.
    """
    try:
        file = Path(inspect.getsourcefile(thing) or "")
        if file.is_file():
            return file.read_text("utf-8", "replace")
        return inspect.getsource(thing)
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)  # typed at a prompt that keeps no source
        return f"{code.co_code!r}{code.co_consts!r}" if code else ""
