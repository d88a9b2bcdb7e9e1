"""`check_law`: one law through the conformance tests of checks, and what they found."""

import dataclasses
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis.configuration import set_hypothesis_home_dir

from fluidcc.check.assertions import describe, line_of_error
from fluidcc.check.checks import RULES, Answer, Subject
from fluidcc.check.network import NetworkTest
from fluidcc.laws.law import Law
from fluidcc.laws.registry import LAWS, kind_of, own_laws, register, restore
from fluidcc.result import Result, plain
from fluidcc.scenario.network import Network

OK, FAILED, NOT_APPLICABLE = "ok", "failed", "not applicable"


_NETWORK: dict[str, Callable[[NetworkTest], Answer]] = {
    "scenario": NetworkTest.scenario,
    "equilibrium": NetworkTest.settles,
    "stability": NetworkTest.stable,
    "trajectory": NetworkTest.course,
    "packets": NetworkTest.packets,
}
_DECISIVE = ("results", "branches", "scenario", "equilibrium")
"""Checks that those in a network depend on."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """One check of one law: its verdict, and why; `why` has one line for each fault."""

    check: str
    verdict: str
    why: str = ""


@dataclasses.dataclass(frozen=True, repr=False)
class LawReport(Result):
    """Every check of one law, in the order in which they were made.

    Examples
    --------
    >>> from fluidcc.check.verb import Finding, LawReport
    >>> LawReport("reno", "window", (Finding("units", "ok"),)).summary
    'reno: 1 ok, 0 failed, 0 not applicable'
    """

    _view = "verdicts.LawView"

    law: str
    kind: str
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The checks that failed."""
        return tuple(f for f in self.findings if f.verdict == FAILED)

    @property
    def summary(self) -> str:
        """The counts of the verdicts in a line."""
        count = len([f for f in self.findings if f.verdict == OK])
        none = len(self.findings) - count - len(self.failed)
        return f"{self.law}: {count} ok, {len(self.failed)} failed, {none} not applicable"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "law": self.law,
            "kind": self.kind,
            "sound": not self.failed,
            "summary": self.summary,
            "checks": plain(self.findings),
        }


def check_law(
    law: type[Law],
    *,
    scenario: Network | None = None,
    progress: Callable[[float], None] | None = None,
) -> LawReport:
    """Examine a law: its rules in every engine, and a network with it.

    Numbers to try rules with are drawn from the parameters' ranges, the same each time.

    Parameters
    ----------
    law
        A class of a law, registered or not.
    scenario
        A network with the law in it, if its defaults do not suit the usual one: ten flows over
        a link of 10 Mbit/s.
    progress
        Called with the finished share after each check.

    Returns
    -------
    LawReport
        One finding for each check: ok, failed or not applicable, and why.

    Raises
    ------
    ScenarioError
        If the class is no law that can be added; see `register`.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.laws.window.reno import Reno
    >>> report = fc.check_law(Reno)
    >>> report.failed, report.to_dict()["sound"]
    ((), True)
    """
    before = own_laws()
    set_hypothesis_home_dir(Path(tempfile.gettempdir(), "fluidcc-hypothesis"))
    try:
        if not any(law in laws.values() for laws in LAWS.values()):
            register(law)
        kind = kind_of(law)
        return LawReport(law.name, kind, tuple(_findings(law, kind, scenario, progress)))
    finally:
        restore(before)
        set_hypothesis_home_dir(None)


def _findings(law: type[Law], kind: str, scenario: Any, progress: Any) -> list[Finding]:
    subject, network = Subject(law), NetworkTest(law, kind, scenario)
    listed = [(name, check, subject) for name, check in RULES.items()]
    listed += [(name, check, network) for name, check in _NETWORK.items()]
    found: dict[str, Finding] = {}
    for name, check, thing in listed:
        bad = [n for n in _DECISIVE if n in found and found[n].verdict == FAILED]
        if thing is network and bad:
            why = "it needs a check above that failed"
            found[name] = Finding(name, NOT_APPLICABLE, why)
            continue
        found[name] = finding(name, check, thing)
        if progress is not None:
            progress(len(found) / len(listed))
    return list(found.values())


def finding(name: str, check: Callable[[Any], Answer], thing: Any) -> Finding:
    """The finding of one check; an error in a rule is a fault of the law."""
    try:
        faults, summary = check(thing)
    except Exception as error:
        where, why = line_of_error(error), describe(error)
        return Finding(name, FAILED, f"{where}: {why}" if where else why)
    if faults is None:
        return Finding(name, NOT_APPLICABLE, summary)
    lines = [fault for fault in faults if fault]
    return Finding(name, FAILED, "\n".join(lines)) if lines else Finding(name, OK, summary)
