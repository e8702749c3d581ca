"""Write a release, plan, watch or ledger as one self-contained HTML page; write model cards.

report.py              report(release, plan, watch or ledger) -> Page
card.py                card(release) -> MarkdownPage: metadata for the Hugging Face Hub, and the same facts as text
markdown_page.py       MarkdownPage: a described value as Markdown, and as an HTML page
page.py                Page: a filled template, with saving and notebook display; formats of numbers
release_page.py        page of a release; watch_page.py: page of a watch
plan_page.py           page of a plan, with the cost of privacy around the chosen point
ledger_page.py         spent, limit and remaining budget of each data set
guarantee_text.py      the coverage promise in sentences, and the distribution of coverage over calibrations
protection.py          the privacy statement; the mechanism, metadata and silos of a release
thresholds.py          effect of a threshold on invented numbers; thresholds along a chain of releases
measurements.py        measurements on labelled records, private or not
charts.py              all charts of the pages, as SVG
ledger_entries.py      budget that the data had spent before a release, and with it
"""

from confide.reports.card import card
from confide.reports.ledger_page import ledger_page
from confide.reports.report import report
