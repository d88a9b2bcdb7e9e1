"""Random numbers inside rules, and the mean of a rule over its random number.

A rule that a law `draws` for reads `random` of its event: a number in [0, 1), all alike, which the
packet engine draws anew at each event. Everywhere else it is None, and the rule gives its mean.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from fluidcc import ops
from fluidcc.dual import Dual
from fluidcc.ops import Num
from fluidcc.programs import map_tree

MEANS_KNOWN = (
    "a rule that compares `random` once, as in ops.where(ack.random < chance, yes, no), or uses it "
    "by +, -, * and / with other numbers alone: no other mean is known"
)
"""Rules with a random number that every engine has."""


class _Decision:
    """The one comparison of a random number: its answer, and the chance that it is a yes."""

    chance: Num = None

    def __init__(self, *, answer: bool) -> None:
        self.answer = answer


class RandomNumber(Dual):
    """A random number, `low` plus `span` times one of [0, 1), of which only means are asked."""

    __slots__ = ("decision", "low", "span")

    def __init__(self, decision: _Decision, low: Num = 0.0, span: Num = 1.0) -> None:
        self.decision, self.low, self.span = decision, low, span

    @property
    def value(self) -> Any:
        """No single one."""
        raise TypeError(MEANS_KNOWN)

    level = value

    def mean(self) -> Num:
        """The mean. Raises TypeError if it depends on what the number has decided."""
        if self.decision.chance is not None:
            raise TypeError(MEANS_KNOWN)
        return self.low + self.span / 2

    def _moved(self, low: Num, span: Num) -> "RandomNumber":
        if isinstance(low, RandomNumber):
            raise TypeError(MEANS_KNOWN)
        return RandomNumber(self.decision, low, span)

    def __add__(self, other: Any) -> "RandomNumber":
        return self._moved(self.low + other, self.span)

    def __sub__(self, other: Any) -> "RandomNumber":
        return self._moved(self.low - other, self.span)

    def __rsub__(self, other: Any) -> "RandomNumber":
        return self._moved(other - self.low, -self.span)

    def __mul__(self, other: Any) -> "RandomNumber":
        return self._moved(self.low * other, self.span * other)

    def __truediv__(self, other: Any) -> "RandomNumber":
        return self._moved(self.low / other, self.span / other)

    def __neg__(self) -> "RandomNumber":
        return self._moved(-self.low, -self.span)

    __radd__, __rmul__ = __add__, __mul__

    def _decide(self, bound: Num, *, below: bool) -> bool:
        """Whether the number is on one side of a bound: yes or no, as this evaluation has it."""
        if isinstance(bound, RandomNumber) or self.decision.chance is not None:
            raise TypeError(MEANS_KNOWN)
        share = (bound - self.low) / self.span
        share = ops.where(share > 1, 1.0 + 0.0 * share, share)  # at an end with its inner slope
        share = ops.where(share < 0, 0.0 * share, share)
        pair = (share, 1 - share) if below else (1 - share, share)
        self.decision.chance = ops.where(self.span > 0, *pair)
        return self.decision.answer

    def __lt__(self, other: Any) -> bool:
        return self._decide(other, below=True)

    def __gt__(self, other: Any) -> bool:
        return self._decide(other, below=False)

    __le__, __ge__ = __lt__, __gt__

    def __pow__(self, other: Any) -> Any:
        raise TypeError(MEANS_KNOWN)

    __abs__ = __rtruediv__ = __rpow__ = __getitem__ = __pow__  # type: ignore[assignment]


def _mean(rule: Callable[[Num], Any]) -> Any:
    """Mean of a function of a random number, a tree of numbers."""
    decision = _Decision(answer=True)
    yes = rule(RandomNumber(decision))
    if decision.chance is None:
        return map_tree(_collapsed, yes)
    no = rule(RandomNumber(_Decision(answer=False)))
    return map_tree(lambda a, b: _collapsed(b + decision.chance * (a - b)), yes, no)


def _collapsed(value: Num) -> Num:
    return value.mean() if isinstance(value, RandomNumber) else value


def over_draws(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule, whose last argument is an event: its mean if that has no random number."""

    @functools.wraps(rule)
    def averaged(self: Any, *arguments: Any) -> Any:
        *before, event = arguments
        if event.random is not None:
            return rule(self, *arguments)
        return _mean(lambda number: rule(self, *before, event._replace(random=number)))

    return averaged


def average_rules(law: type, names: Sequence[str]) -> None:
    """Let the named rules that a class of laws defines give their means; see `over_draws`."""
    for name in names:
        if callable(own := vars(law).get(name)):
            setattr(law, name, over_draws(own))
