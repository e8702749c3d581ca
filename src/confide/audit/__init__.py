"""A mechanism, ours or anybody's, and its claims come in; findings leave, made on your own machine.

subject.py     what is audited: a mechanism that can be run, its claims; neighbours and events to look at
exact_loss.py  (1) the loss, by enumeration of small cases; (2) the sampler against the exact law, by chi-square
attack.py      (3) a lower bound on the true epsilon, by running the mechanism on the worst neighbours
search.py      where the worst neighbours are, if no law tells; (5) independence of consecutive calls
coverage.py    (4) coverage, exactly on small cases and by simulation on nasty distributions
membership.py  what an attacker learns about one person from thresholds and prediction sets
builtin.py     the library's own mechanisms; foreign.py: anybody else's
finding.py     one result, and the report of all
run.py         the checks together: how often mechanisms are run, and how far they are
"""

from confide.audit.finding import Finding, Report
from confide.audit.foreign import foreign_subject, load
from confide.audit.run import BRIEF, LONG, SECONDS, Effort, audit, audit_library, effort_within
from confide.audit.subject import Claims, Subject

__all__ = [
    "BRIEF", "LONG", "SECONDS", "Claims", "Effort", "Finding", "Report", "Subject", "audit", "audit_library",
    "effort_within", "foreign_subject", "load",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
