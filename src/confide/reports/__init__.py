"""Write a release, plan, evaluation, watch or ledger as one self-contained HTML page; write model cards.

report.py        report(value) -> Page
page.py          Page: a section as HTML, with template, style sheet and pictures, and as Markdown
words.py         promise, protection and limits in plain sentences, and the variation of coverage
release_page.py  section of a release, with an evaluation of it and its silos; section of a plan
example.py       effect of a threshold on invented numbers
watch_page.py    section of a watch: looks, alarm, evidence
ledger_page.py   spent, limit and remaining budget of each data set, and of the data of a release
card.py          card(release) -> Page: metadata for the Hugging Face Hub, and the same facts as text
"""

from confide.reports.card import card
from confide.reports.ledger_page import ledger_page
from confide.reports.report import report
from confide.reports.words import as_sentence
