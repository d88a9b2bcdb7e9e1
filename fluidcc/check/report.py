"""What the checks found of a law."""

import dataclasses
from typing import Any

from fluidcc.result import Result

OK, FAILED, NOT_APPLICABLE = "ok", "failed", "not applicable"


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
    >>> from fluidcc.check.report import Finding, LawReport
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
            "checks": [dataclasses.asdict(finding) for finding in self.findings],
        }
