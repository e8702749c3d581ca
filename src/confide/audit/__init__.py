"""A mechanism, ours or anybody's, and its claims come in; findings leave, made on your own machine.

subject.py     what is audited: a mechanism that can be run, its claims, and its exact law if that is known
exact_loss.py  (1) the loss, by enumeration of small cases
fit.py         (2) the sampler against the exact law, by chi-square
attack.py      (3) a lower bound on the true epsilon, by running the mechanism on the worst neighbours
search.py      where the worst neighbours are, if no law tells; neighbors.py: where to look; events.py: what to look at
coverage.py    (4) coverage, exactly on small cases and by simulation on nasty distributions; betting.py: its test
fresh.py       (5) independence of consecutive calls
membership.py  what an attacker learns about one person from thresholds and prediction sets
builtin.py     the library's own mechanisms; foreign.py: anybody else's
finding.py     one result, and the report of all; laws.py: exact laws of the selectors
effort.py      how often mechanisms are run; runs.py: how far they are, for whoever watches
run.py         the checks together
"""

from confide.audit.effort import BRIEF, LONG, SECONDS, Effort, effort_within
from confide.audit.finding import Finding, Report
from confide.audit.foreign import foreign_subject, load
from confide.audit.run import audit, audit_library
from confide.audit.subject import Claims, Subject

__all__ = [
    "BRIEF", "LONG", "SECONDS", "Claims", "Effort", "Finding", "Report", "Subject", "audit", "audit_library",
    "effort_within", "foreign_subject", "load",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
