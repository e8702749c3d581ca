"""A release, plan, watch or ledger comes in, with what was measured if there is any; one self-contained page leaves.

report.py              report(release, plan, watch or ledger) -> Page
page.py                Page: a template filled in, which saves itself and shows itself in a notebook
release_page.py        what the page of a release says; plan_page.py: that of a plan; watch_page.py: that of a watch
ledger_page.py         what was spent by whom on what, and what is left
promise.py             the coverage promise in sentences; protection.py: the privacy statement
thresholds.py          what a threshold does, in words and on invented numbers
course.py              the course of thresholds along a chain of releases
coverage_laws.py       how coverage varies from calibration to calibration
grid.py                what privacy costs, around the chosen point
evaluation_section.py  what was measured on labelled records; private_section.py: privately
silos.py               who took part in a federation
provenance.py          how a release was made, for those who check it
stated.py              who made it of what, when and what for
spending.py            what its data had spent before, and with it
terms.py               terms of the theory in plain words
numbers.py             numbers for people
"""

from confide.reports.ledger_page import ledger_page
from confide.reports.report import report

__all__ = ["ledger_page", "report"]


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
