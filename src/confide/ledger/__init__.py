"""What has been spent on which data. In come costs, requests and releases; out go charges, accounts and kept releases.

cost.py         what one release costs, and figures for what many cost together, with their derivations
composition.py  from the costs of many releases to these figures
accountants.py  the figures that dp-accounting gives
events.py       the append-only records of a ledger, each sealed with the one before
account.py      records to what has been spent (a pure function)
store.py        records in SQLite: durable, atomic across processes, suspicious of what it reads
schedule.py     what a year may spend on one person, and its file
budget_plan.py  the dearest schedule that keeps a total, by each rule
following.py    what a followed schedule allows next (a pure function)
limit.py        whether charges fit a limit
names.py        which names are one, and which only look alike
book.py         `Ledger`, which joins them
identity.py     which requests are identical; keyed fingerprints
payment.py      whatever is released for a cost: the earlier release, or a charge before and a record after it
"""

from confide.ledger.account import Account, Entry, known
from confide.ledger.book import Charge, Ledger, plain
from confide.ledger.budget_plan import best_of, budget_plan, by_rules
from confide.ledger.composition import compose
from confide.ledger.cost import Bound, Cost, Group, Loss, decimal_form
from confide.ledger.identity import Dataset, fingerprint, request_digest
from confide.ledger.limit import Limit
from confide.ledger.payment import Bill, Payment, make_payment, pay
from confide.ledger.schedule import IN_WORDS, RULES, Planned, Schedule, counted

__all__ = [
    "IN_WORDS", "RULES", "Account", "Bill", "Bound", "Charge", "Cost", "Dataset", "Entry", "Group", "Ledger", "Limit",
    "Loss", "Payment", "Planned", "Schedule", "best_of", "budget_plan", "by_rules", "compose", "counted",
    "decimal_form", "fingerprint", "known", "make_payment", "pay", "plain", "request_digest",
]  # fmt: skip
