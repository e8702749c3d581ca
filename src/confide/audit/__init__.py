"""Audits of mechanisms and their claims, which run on your own machine.

subject.py     a mechanism with its claims, from the library or from outside; findings and the report
library.py     the library's own mechanisms
exact.py       (1) privacy loss and (4) coverage, by enumeration of small cases
sampler.py     (2) the noise against its exact law, by chi-square; (5) independence of consecutive calls
search.py      (3) the worst neighbours, and a lower bound on the true epsilon by running the mechanism on them
coverage.py    (4) coverage by simulation on difficult distributions
membership.py  what an attacker learns about one person from thresholds and prediction sets
run.py         all checks together: number of runs, and progress
"""

from confide.audit.run import BRIEF, LONG, SECONDS, Effort, audit, audit_library, effort_within
from confide.audit.subject import Claims, Finding, Report, Subject, foreign_subject, load

__all__ = [
    "BRIEF", "LONG", "SECONDS", "Claims", "Effort", "Finding", "Report", "Subject", "audit", "audit_library",
    "effort_within", "foreign_subject", "load",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
