"""What has been spent on which data. In come costs, requests and releases; out go charges, accounts and kept releases.

cost.py         what one release costs, and figures for what many cost together, with their derivations
composition.py  from the costs of many releases to these figures
accountants.py  the figures that dp-accounting gives
events.py       the append-only records of a ledger, each sealed with the one before
account.py      records to what has been spent (a pure function)
store.py        records in SQLite: durable, atomic across processes, suspicious of what it reads
names.py        which names are one, and which only look alike
book.py         `Ledger`, which joins them
identity.py     which requests are identical; keyed fingerprints
payment.py      whatever is released for a cost: the earlier release, or a charge before and a record after it
"""

from confide.ledger.account import Account, Entry, Limit, known
from confide.ledger.book import Charge, Ledger, plain
from confide.ledger.composition import compose
from confide.ledger.cost import Bound, Cost, Group, Loss, decimal_form
from confide.ledger.identity import Dataset, fingerprint, request_digest
from confide.ledger.payment import Bill, Payment, make_payment, pay

__all__ = [
    "Account", "Bill", "Bound", "Charge", "Cost", "Dataset", "Entry", "Group", "Ledger", "Limit", "Loss", "Payment",
    "compose", "decimal_form", "fingerprint", "known", "make_payment", "pay", "plain", "request_digest",
]  # fmt: skip
