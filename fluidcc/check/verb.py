"""One law through the whole battery."""

from collections.abc import Callable
from typing import Any

from fluidcc.check import checks
from fluidcc.check.checks import Answer, Subject
from fluidcc.check.places import in_words, place
from fluidcc.check.report import FAILED, NOT_APPLICABLE, OK, Finding, LawReport
from fluidcc.check.whole import Whole
from fluidcc.laws.addable import kind_of
from fluidcc.laws.law import Law
from fluidcc.laws.registry import LAWS, own_laws, register, restore
from fluidcc.scenario.network import Network

RULES: dict[str, Callable[[Subject], Answer]] = {
    "ranges": checks.ranges,
    "symbols": checks.symbols,
    "results": checks.results,
    "branches": checks.branches,
    "engines": checks.engines,
    "derivatives": checks.derivatives,
    "batches": checks.batches,
    "no event": checks.still,
    "parts": checks.parts,
    "direction": checks.direction,
    "probabilities": checks.probabilities,
    "declarations": checks.declarations,
    "means": checks.packets_mean,
    "latex": checks.latex,
}
_NETWORK: dict[str, Callable[[Whole], Answer]] = {
    "scenario": Whole.scenario,
    "equilibrium": Whole.settles,
    "stability": Whole.stable,
    "trajectory": Whole.course,
    "packets": Whole.packets,
}


def check_law(
    law: type[Law],
    *,
    scenario: Network | None = None,
    progress: Callable[[float], None] | None = None,
) -> LawReport:
    """Examine a law: its rules in every engine, and what it does in a network.

    Numbers to try rules with are drawn from the parameters' ranges, the same each time.

    Parameters
    ----------
    law
        A class of a law, registered or not.
    scenario
        A network with the law in it, where its defaults do not suit the one that is taken
        otherwise: ten flows over a link of 10 Mbit/s.
    progress
        Called with the finished share after each check.

    Returns
    -------
    LawReport
        One finding for each check: ok, failed or not applicable, and why.

    Raises
    ------
    ScenarioError
        If it is no law that can be added; see `register`.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.laws.window.reno import Reno
    >>> report = fc.check_law(Reno)
    >>> report.failed, report.to_dict()["sound"]
    ((), True)
    """
    before = own_laws()
    try:
        if not any(law in laws.values() for laws in LAWS.values()):
            register(law)
        kind = kind_of(law)
        return LawReport(law.name, kind, tuple(_findings(law, kind, scenario, progress)))
    finally:
        restore(before)


def _findings(law: type[Law], kind: str, scenario: Any, progress: Any) -> list[Finding]:
    found, total = [], len(RULES) + len(_NETWORK)

    def take(name: str, judge: Callable[[Any], Answer], thing: Any) -> None:
        found.append(finding(name, judge, thing))
        if progress is not None:
            progress(len(found) / total)

    subject = Subject(law)
    for name, judge in RULES.items():
        take(name, judge, subject)
    sound = not any(f.verdict == FAILED for f in found if f.check in ("results", "branches"))
    if sound:
        whole = Whole(law, kind, scenario)
        for name, judge in _NETWORK.items():
            take(name, judge, whole)
            if found[-1].verdict == FAILED and name in ("scenario", "equilibrium"):
                break
    left, why = list(_NETWORK)[len(found) - len(RULES) :], "it needs a check above that failed"
    return found + [Finding(name, NOT_APPLICABLE, why) for name in left]


def finding(name: str, judge: Callable[[Any], Answer], thing: Any) -> Finding:
    """What one check finds; an error in a rule is a fault of the law."""
    try:
        faults, told = judge(thing)
        if faults is None:
            return Finding(name, NOT_APPLICABLE, told)
        lines = [fault for fault in faults if fault]
    except Exception as error:
        where, why = place(error), in_words(error)
        return Finding(name, FAILED, f"{where}: {why}" if where else why)
    return Finding(name, FAILED, "\n".join(lines)) if lines else Finding(name, OK, told)
