"""What an audit found, for people and for machines."""

import json
import math
from dataclasses import asdict, dataclass
from itertools import groupby
from textwrap import fill, wrap
from typing import Any


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Parameters
    ----------
    subject
        What was checked.
    check
        `"exact loss"`, `"sampler"`, `"attack"`, `"search"`, `"fresh noise"`, `"exact coverage"` or `"coverage"`.
    claim
        The number that was claimed.
    found
        The number that was found, to be compared with the claim.
    passed
        Whether the claim stands.
    detail
        One line on how it was found.
    """

    subject: str
    check: str
    claim: float
    found: float
    passed: bool
    detail: str


@dataclass(frozen=True)
class Report:
    """All findings of an audit.

    Parameters
    ----------
    findings
        One per check.
    level
        Bound on the probability that an audit of honest mechanisms fails by chance, over all its checks together.
    versions
        The installed versions that were audited.

    Examples
    --------
    >>> print(Report((Finding("mine", "exact loss", 1.0, 1.5, False, "n=6"),), 1e-4, {"confide": "0"}))
    mine                                    claimed           found      verdict
      privacy loss, all small cases         at most 1         1.5        FAILED
          n=6
    1 of 1 checks failed. Honest mechanisms fail one with probability at most 0.0001
    (confide 0).
    """

    findings: tuple[Finding, ...]
    level: float
    versions: dict[str, str]

    @property
    def passed(self) -> bool:
        """Whether every claim stands."""
        return all(finding.passed for finding in self.findings)

    def to_json(self) -> str:
        """The report as a JSON document."""
        content = {
            "kind": "confide.audit",
            "schema": 1,
            "passed": self.passed,
            "level": self.level,
            "versions": self.versions,
            "findings": [_finite(asdict(finding)) for finding in self.findings],
        }
        return json.dumps(content, indent=2, allow_nan=False) + "\n"

    def __str__(self) -> str:
        lines = []
        for subject, found in groupby(self.findings, key=lambda finding: finding.subject):
            lines += _lines(subject, list(found))
        failed = sum(not finding.passed for finding in self.findings)
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        verdict = (
            f"{failed} of {len(self.findings)} checks failed" if failed else f"all {len(self.findings)} checks passed"
        )
        chance = f"Honest mechanisms fail one with probability at most {self.level:g}"
        return "\n".join([*lines, fill(f"{verdict}. {chance} ({versions}).", _WIDTH)])


_WIDTH = 80
_P_VALUE = "p at least"

_WORDS = {
    "exact loss": ("privacy loss, all small cases", "at most"),
    "attack": ("privacy loss, attack on the worst", "at most"),
    "search": ("privacy loss, attack after a search", "at most"),
    "sampler": ("noise follows the stated law", _P_VALUE),
    "fresh noise": ("noise is fresh in every call", _P_VALUE),
    "exact coverage": ("coverage, all small cases", "at least"),
    "coverage": ("coverage, simulated", "at least"),
}
"""What people are told of a check: what was checked, and how the claim is to be read."""


def _lines(subject: str, findings: list[Finding]) -> list[str]:
    """The table of one subject: simulations that passed are one line, checks that failed are explained."""
    lines = [f"{subject:<38}  {'claimed':<16}  {'found':<9}  verdict"]
    covering = [finding for finding in findings if finding.check == "coverage" and finding.passed]
    if covering:
        lowest = min(covering, key=lambda finding: finding.found)
        findings = [one for one in findings if one is lowest or one not in covering]
    for finding in findings:
        what, how = _WORDS[finding.check]
        if finding.check == "coverage" and finding.passed:
            what += f" on {len(covering)} laws"
        claim = f"{how} {finding.claim:.{1 if how == _P_VALUE else 3}g}"
        verdict = "ok" if finding.passed else "FAILED"
        lines.append(f"  {what:<36}  {claim:<16}  {_shown(finding.found):<9}  {verdict}")
        if not finding.passed:
            lines += wrap(finding.detail, _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return lines


def _shown(found: float) -> str:
    return "nothing" if found == -math.inf else f"{found:.4g}"


def _finite(content: dict[str, Any]) -> dict[str, Any]:
    return {k: f"{v:+}" if isinstance(v, float) and not math.isfinite(v) else v for k, v in content.items()}
