"""A release, plan, watch or ledger comes in, with what was measured if there is any; one self-contained page leaves.

report.py              report(release, plan, watch or ledger) -> Page
page.py                Page: a template filled in, which saves itself and shows itself in a notebook; numbers in words
release_page.py        what the page of a release says; watch_page.py: that of a watch
plan_page.py           the page of a plan, and what privacy costs around the chosen point
ledger_page.py         what was spent by whom on what, and what is left
promise.py             the coverage promise in sentences, and how coverage varies from calibration to calibration
protection.py          the privacy statement; how a release was made, by whom, of what, with which silos
thresholds.py          what a threshold does, on invented numbers; the course of thresholds along a chain of releases
measured.py            what was measured on labelled records, with a privacy of its own or without
charts.py              every chart of the pages, drawn by the server
spending.py            what its data had spent before, and with it
"""

from confide.reports.ledger_page import ledger_page
from confide.reports.report import report
