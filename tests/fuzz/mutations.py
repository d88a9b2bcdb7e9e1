"""Spoiled scenarios and spoiled options: text number k of a seed is always the same."""

import copy
import datetime
import random
import tomllib
from typing import Any

from fluidcc import bundled, load, paths
from fluidcc.laws.registry import LAWS
from fluidcc.scenario.tables import literal

WORDS = (
    "law", "n", "rtt", "min", "max", "uniform", "queue", "window", "feedback", "route", "voice",
    "calls", "arrivals", "traffic", "sender", "initial", "start", "reaction", "loss", "marking",
    "estimator", "title", "model", "rates", "links", "flows", "buffer", "cross", "capacity",
    *(name for laws in LAWS.values() for name in laws),
)  # fmt: skip
QUANTITIES = (
    "10 Mbit/s", "10Mbps", "88 ms", "5 s", "90 kB", "150 packet", "1e400 s", "9**9**9 s", "inf",
    "-inf", "nan", "0 B", "1/0 s", "1e-999 s", "0x10 s", "1_0 s", "10,5 ms", "-3 ms", "1e308 h",
    "10 MBIT/S", " 5 ms ", "5", "", "ms", "5 ms ms", "5 %", "1e99 GB", "__import__('os')", "{0}",
    "%s%n", "../../etc/passwd", "\x00", "\x1b[31m", "\N{ARABIC-INDIC DIGIT THREE} s",
    "\N{FULLWIDTH DIGIT FIVE} s", "\N{MICRO SIGN}s", "5 \N{GREEK SMALL LETTER MU}s",
    "9" * 400 + " s",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 3, 0.5, 1e-308, 5e-324, 1e308, -1e308, 1e12, 1e-12, 10**30, 10**400, 2**53, 2**63,
    -(2**63) - 1, float("inf"), float("-inf"), float("nan"), 9999, 10_000, 10_001, 0.1, 1e3,
)  # fmt: skip
TEXTS = (
    "[", "]", "{", "}", "[[", "]]", "=", '"', '"""', "'''", "#", "\\", "\n", "\r", "\t", "\x00",
    "\ufeff", "\N{RIGHT-TO-LEFT OVERRIDE}", "\N{COMBINING ACUTE ACCENT}", "🜁", "\u2028", "1e", "0x",
    "1979-05-27", "07:32:00", "true", "inf", "nan", ",", ".", "..", "links.", "[links.x]\n",
    "[flows.x]\n", "[[links]]\n", "[" * 50, "{ a = " * 30, "a." * 50, "9" * 500, "\\u0000",
)  # fmt: skip


def _value(rng: random.Random, depth: int = 0) -> Any:
    """Anything that a value can be, and much that it cannot."""
    kind = rng.randrange(10 if depth < 3 else 6)
    if kind < 2:
        return rng.choice(NUMBERS)
    if kind == 2:
        return rng.choice((rng.uniform(-10, 10), rng.randrange(-5, 200), 10 ** rng.uniform(-9, 9)))
    if kind == 3:
        return rng.choice(QUANTITIES)
    if kind == 4:
        return rng.choice(WORDS)
    if kind == 5:
        return rng.choice((True, False, datetime.date(1979, 5, 27), datetime.time(7, 32)))
    if kind == 6:
        return [_value(rng, depth + 1) for _ in range(rng.choice((0, 1, 2, 3, 40)))]
    if kind == 7:
        return {"min": _value(rng, depth + 1), "max": _value(rng, depth + 1)}
    if kind == 8:
        return {"law": rng.choice(WORDS)}
    return {rng.choice(WORDS): _value(rng, depth + 1) for _ in range(rng.randrange(4))}


def _places(table: dict) -> list[tuple[dict, str]]:
    """Every table with each of its keys."""
    found = []
    for key, value in table.items():
        found.append((table, key))
        if isinstance(value, dict):
            found += _places(value)
    return found


def _key(rng: random.Random) -> str:
    return rng.choice((rng.choice(WORDS), rng.choice(("", "a b", "ü", "\n", "x" * 300, "1"))))


def _restructured(rng: random.Random, raw: dict, other: dict) -> None:
    """One change of tables: a value, a key, a table deleted, doubled, moved, or of another file."""
    spots = _places(raw)
    if not spots:
        return
    table, key = rng.choice(spots)
    change = rng.randrange(9)
    if change <= 3:
        table[key] = _value(rng)
    elif change == 4:
        del table[key]
    elif change == 5:
        table[_key(rng)] = table.pop(key)
    elif change == 6:
        elsewhere, _ = rng.choice(spots)
        elsewhere[_key(rng)] = copy.deepcopy(table[key])
    elif change == 7:
        theirs, at = rng.choice(_places(other))
        table[key if rng.random() < 0.5 else at] = copy.deepcopy(theirs[at])
    else:
        table[_key(rng)] = _value(rng)


def _toml(raw: dict) -> str:
    """Tables as TOML text, each table of links and flows in line."""
    return "".join(f"{_quoted(key)} = {_inline(value)}\n" for key, value in raw.items())


def _quoted(key: str) -> str:
    return literal(key).replace("\x7f", "\\u007f")


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{_quoted(k)} = {_inline(v)}" for k, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return literal(value).replace("\x7f", "\\u007f")


def _cut(rng: random.Random, text: str) -> tuple[int, int]:
    """The ends of a short piece of text."""
    start = rng.randrange(len(text) + 1)
    return start, min(len(text), start + rng.choice((0, 1, 1, 2, 5, 20, 100)))


def _by_bytes(rng: random.Random, text: str) -> str:
    data = bytearray(text.encode())
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(data))
        data[at] = rng.choice((data[at] ^ (1 << rng.randrange(8)), rng.randrange(256)))
    return data.decode(errors="replace")


def _by_pieces(rng: random.Random, text: str, other: str) -> str:
    """Pieces deleted, doubled, swapped for others, or taken from another scenario."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        (start, end), (first, last) = _cut(rng, text), _cut(rng, other)
        piece = rng.choice(
            ("", text[start:end] * 2, rng.choice(TEXTS), other[first:last], rng.choice(WORDS))
        )
        text = text[:start] + piece + text[end:]
    return text


def _by_lines(rng: random.Random, text: str, other: str) -> str:
    """Lines deleted, doubled, moved, or taken from another scenario."""
    lines, theirs = text.splitlines(), other.splitlines()
    for _ in range(rng.choice((1, 2, 4))):
        at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
        change = rng.randrange(4)
        if change == 0 and len(lines) > 1:
            del lines[at]
        elif change == 1:
            lines.insert(to, lines[at])
        elif change == 2:
            lines[at], lines[to] = lines[to], lines[at]
        else:
            lines.insert(to, rng.choice(theirs))
    return "\n".join(lines)


class Scenarios:
    """The bundled scenarios, and texts made by spoiling them."""

    def __init__(self) -> None:
        files = bundled.scenarios()
        self.names = list(files)
        self.texts = [file.read_text(encoding="utf-8") for file in files.values()]
        self.tables = [tomllib.loads(text) for text in self.texts]

    def spoiled(self, number: int, seed: int = 0) -> str:
        """Text `number` of a seed."""
        rng = random.Random(f"{seed}/{number}")
        one, two = rng.randrange(len(self.texts)), rng.randrange(len(self.texts))
        way = rng.randrange(10)
        if way == 0:
            return _by_bytes(rng, self.texts[one])
        if way == 1:
            return _by_pieces(rng, self.texts[one], self.texts[two])
        if way == 2:
            return _by_lines(rng, self.texts[one], self.texts[two])
        raw = copy.deepcopy(self.tables[one])
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
            _restructured(rng, raw, self.tables[two])
        return _toml(raw)


class Options:
    """Texts of `--set` and `--over` for one network, spoiled."""

    def __init__(self, name: str = "misra2003/mixed") -> None:
        self.net = load(name)
        self.paths = list(paths(self.net))

    def spoiled(self, number: int, seed: int = 0) -> tuple[str, str]:
        """Option and text `number` of a seed."""
        rng = random.Random(f"options {seed}/{number}")
        path = rng.choice(self.paths)
        if rng.random() < 0.3:
            path = _by_pieces(rng, path, rng.choice(self.paths))
        if rng.random() < 0.5:
            return "--set", f"{path}={self._text(rng)}"
        separator = rng.choice((":", ":", ",", ",", "..", ";"))
        parts = [self._text(rng) for _ in range(rng.choice((1, 2, 3, 3, 3, 4)))]
        return "--over", f"{path}={separator.join(parts)}"

    def _text(self, rng: random.Random) -> str:
        if rng.random() < 0.3:
            return str(rng.choice((1, 2, 0.5, 10, 0.01, 5)))
        value = _value(rng)
        text = value if isinstance(value, str) else _inline(value)
        return _by_pieces(rng, text, "0123456789") if rng.random() < 0.2 else text
