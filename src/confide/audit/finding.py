"""What an audit found, for people and for machines."""

import json
import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Parameters
    ----------
    subject
        What was checked.
    check
        `"exact loss"`, `"sampler"`, `"attack"`, `"exact coverage"` or `"coverage"`.
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
    subject  check        claim  found  verdict
    mine     exact loss       1    1.5  FAILED   n=6
    1 of 1 checks failed; honest mechanisms fail one with probability at most 0.0001 (confide 0)
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
        head = ("subject", "check", "claim", "found", "verdict", "")
        rows = [
            (f.subject, f.check, f"{f.claim:.6g}", f"{f.found:.6g}", "ok" if f.passed else "FAILED", f.detail)
            for f in self.findings
        ]
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(5)]
        lines = []
        for row in [head, *rows]:
            cells = [f"{cell:{'>' if i in (2, 3) else '<'}{widths[i]}}" for i, cell in enumerate(row[:5])]
            lines.append("  ".join([*cells, row[5]]).rstrip())
        failed = sum(not finding.passed for finding in self.findings)
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        verdict = f"{failed} of {len(rows)} checks failed" if failed else f"all {len(rows)} checks passed"
        lines.append(f"{verdict}; honest mechanisms fail one with probability at most {self.level:g} ({versions})")
        return "\n".join(lines)


def _finite(content: dict[str, Any]) -> dict[str, Any]:
    return {k: f"{v:+}" if isinstance(v, float) and not math.isfinite(v) else v for k, v in content.items()}
