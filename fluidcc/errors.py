"""Faults of scenarios, paths and options, collected so that one error reports them all; and missing
optional dependencies.
"""

import dataclasses
import difflib
import functools
import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_LONGEST = 200  # characters of a name or value in a message
_LISTED = 1500  # characters of the expected form, which may list names
_COMPARED = 100  # characters of a name that is looked up among others


def shown(text: str, most: int = _LONGEST) -> str:
    """Text of any origin for a message: in one line, without control characters, not too long."""
    if len(text) > most:
        text = f"{text[: most - 40]} ... ({len(text)} characters)"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def with_type(value: object) -> str:
    """A value of a wrong type, for messages."""
    return f"{value!r:.60} ({type(value).__name__})"


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault: where it is (file or option), at which key, the expected form and the given value.

    Examples
    --------
    >>> import fluidcc as fc
    >>> try:
    ...     fc.replace(fc.load("hollot2001/slow"), {"link.queue.wq": 0.1})
    ... except fc.ScenarioError as error:
    ...     fault = error.faults[0]
    >>> fault.key, fault.nearest[0]
    ('link.queue.wq', 'link.queue.w_q')
    """

    where: str
    key: str
    expected: str
    got: str
    nearest: tuple[str, ...] = ()

    def __str__(self) -> str:
        where, expected, got = self._shown()
        hint = f"; did you mean {' or '.join(map(repr, self.nearest))}?" if self.nearest else ""
        return f"{where}: expected {expected}, got {got}{hint}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the whole text as `message`; `where` has the key."""
        where, expected, got = self._shown()
        named = {"where": where, "expected": expected, "got": got, "nearest": list(self.nearest)}
        return {"message": str(self), **named}

    def _shown(self) -> tuple[str, str, str]:
        where = ": ".join(shown(part) for part in (self.where, self.key) if part)
        return where, shown(self.expected, _LISTED), shown(self.got)


class ScenarioError(ValueError):
    """A scenario, a path or an option is faulty; `faults` has every fault, `str()` lists them.

    Examples
    --------
    >>> import fluidcc as fc
    >>> try:
    ...     fc.replace(fc.load("hollot2001/slow"), {"link.queue.p_max": 2})
    ... except fc.ScenarioError as error:
    ...     print(error)
    replace: links.bottleneck.queue.p_max: expected a value in (0, 1], got 2
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


class SweepStopped(RuntimeError):
    """A sweep ended before all points were done; finished points are kept if it has a folder.

    The message gives the reason, the points kept and the remedy; the same call resumes there.

    Examples
    --------
    >>> import fluidcc as fc
    >>> issubclass(fc.SweepStopped, Exception)
    True
    """


def nearest(
    name: str, names: Sequence[str], count: int = 3, *, least: float = 0.6
) -> tuple[str, ...]:
    """The names most similar to `name`, best first; empty if none has a similarity of `least`.

    Similarity runs from 0 to 1; case is ignored.
    """
    folded: dict[str, str] = {}
    for each in sorted(names, key=lambda each: each[:1].isupper() != name[:1].isupper()):
        folded.setdefault(each.casefold(), each)
    asked = name[:_COMPARED].casefold()
    return tuple(folded[f] for f in difflib.get_close_matches(asked, folded, count, least))


@functools.cache
def ours(kind: str) -> Mapping[str, Sequence[str]]:
    """Our names of a kind (a table of `words.toml`) by the words that people try in their place."""
    tables = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
    pairs = [(word, name) for name, words in tables[kind].items() for word in words.split()]
    return {word: [n for other, n in pairs if other == word] for word, _ in pairs}


def argument(word: str, own: Sequence[str]) -> tuple[str, ...]:
    """Which of a function's or a command's `own` arguments a word means; empty if none."""
    folded = word.replace("-", "_").lower()
    meaning = ours("arguments").get(folded, ())
    return tuple(name for name in meaning if name in own) or nearest(folded, own, 1, least=0.75)


_HELD = "other processes may hold memory of the device: end them, or ask for less at once"


def answers(function: Callable[P, T]) -> Callable[P, T]:
    """Answer a call that does not fit a function with the arguments that it takes, and a device
    without memory left with advice.
    """

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        try:
            return function(*args, **options)
        except TypeError:
            if fault := misuse(function, args, options):
                raise TypeError(str(fault)) from None
            raise
        except RuntimeError as error:  # JAX has no class for it
            code, _, why = str(error).partition("\n")[0].partition(": ")
            if code != "RESOURCE_EXHAUSTED":
                raise
            raise MemoryError(f"{why.rstrip('.')}; {_HELD}") from None

    return call


def misuse(function: Any, args: Any, options: Mapping[str, Any]) -> Fault | None:
    """The fault of a call whose arguments do not fit; None if they do, or if that is not known."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function in C without a signature
        return None
    known, name = signature.parameters, function.__name__
    named = [each.name for each in known.values() if each.kind is each.KEYWORD_ONLY]
    plain = [each for each in known if each not in named]
    form = f"{name}({', '.join([*plain, *(['*'] if named else ()), *named])})"
    if unknown := [word for word in options if word not in known]:
        close = argument(unknown[0], [each for each in known if each not in options])
        return Fault(name, "", f"arguments of {form}", f"{unknown[0]!r}", close)
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        got = re.sub(r"missing a required [\w -]*argument: ", "none for ", str(error))
        got = f"{len(args)} arguments without a name" if len(args) > len(plain) else got
        return Fault(name, "", form, got)
    return None


ALIKE = 0.8
"""Similarity from which on a word is a misspelt one."""


def meant(word: str, names: Sequence[str]) -> tuple[str, ...]:
    """The public name that a word, or one of its parts, means, else that which is spelt most like
    it, among `names` of its case if there is one.
    """
    word = word.replace("-", "_")
    known = {w: n for w, (n,) in ours("functions").items()} | {name: name for name in names}
    own = [name for name in names if name[:1].islower() == word[:1].islower()]
    parts = [part for part in word.lower().split("_") if part not in ("plot", "load", "simulate")]
    for each in (word.lower(), word.lower().removesuffix("s")):
        if each in known:
            return (known[each],)
    if close := nearest(word, own, 1, least=ALIKE):
        return close
    for each in (own for part in parts for own in (part, part.removesuffix("s"))):
        if each in known:
            return (known[each],)
    if close := nearest(word, list(known), 1, least=ALIKE):
        return (known[close[0]],)
    return nearest(word, own, 1) or nearest(word, names, 1)


class _NoAttributeError(AttributeError):
    """The nearest name is looked for as the message is read: `hasattr` needs none."""

    def __str__(self) -> str:
        text = f"{type(self.obj).__name__!r} object has no attribute {self.name!r}"
        found = _attribute(self.obj, str(self.name))
        return f"{text}; did you mean {found}?" if found else text

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)


class Suggests:
    """A wrong attribute is answered with the right one, of the thing or of its links and flows."""

    if not TYPE_CHECKING:  # to a type checker all others are mistakes

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or hasattr(type(self), name):
                return object.__getattribute__(self, name)  # a property that fails: its own error
            raise _NoAttributeError(name=name, obj=self)


def _attribute(thing: Any, name: str) -> str:
    """The attribute that a name means, as Python writes it; empty if there is none like it."""
    known = dict(_attributes(thing))
    for kind in ("links", "flows"):
        if name in getattr(thing, f"{kind[:-1]}_names", vars(thing).get(kind, ())):
            return f"{kind}[{name!r}]"
    meanings = [w.removeprefix("Result.") for w in ours("functions").get(name, ())]
    folded = name.lower() if len(name) > 1 else name
    close = [name, *ours("attributes").get(folded, ()), *meanings]
    if len(name) > 1:
        close += nearest(name, list(known), 1, least=ALIKE)
        having = [other for other in known if name.lower() in other.split("_")]
        close += nearest(name, having, 1, least=0.0)
        close += nearest(name, list(known), 1, least=0.7)
    return next((known[other] for other in close if other in known), "")


def _attributes(thing: Any) -> Iterator[tuple[str, str]]:
    """Names of attributes, and how each is written; those to prefer come last."""
    if (inner := vars(thing).get("equilibrium")) is not None:
        yield from ((name, f"equilibrium.{path}") for name, path in _attributes(inner))
    for kind in ("flows", "links"):
        parts = vars(thing).get(kind, ())
        named = parts.items() if isinstance(parts, Mapping) else enumerate(parts)
        for key, part in list(named)[:1]:
            for field in dataclasses.fields(part) if dataclasses.is_dataclass(part) else ():
                yield field.name, f"{kind}[{key!r}].{field.name}"
    yield from ((own, own) for own in dir(thing) if not own.startswith("_"))


class MissingExtra(ValueError):
    """A feature needs a package that is not installed."""


def extra(module: str, name: str, *, what: str) -> ModuleType:
    """Import a module that the extra `name` installs.

    Raises MissingExtra with the install command; `what` names the feature that needs it.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(f"{what} needs {module}: pip install 'fluidcc[{name}]'") from None
