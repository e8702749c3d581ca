"""What has been spent on which data: a durable ledger, the accounting of many releases, and kept releases.

cost.py         what one release costs
composition.py  what many releases cost together, always with its derivation
accountants.py  the figures that dp-accounting gives
events.py       the append-only records of a ledger, each sealed with the one before
state.py        records to what has been spent (a pure function)
store.py        records in SQLite: durable, atomic across processes, suspicious of what it reads
book.py         `Ledger`, which joins them
identity.py     which requests are identical; keyed fingerprints
"""

from confide.ledger.account import Account, Entry, Limit
from confide.ledger.book import Ledger
from confide.ledger.composition import Bound, Loss, compose
from confide.ledger.cost import Cost, Group
from confide.ledger.identity import Dataset, fingerprint, request_digest

__all__ = [
    "Account",
    "Bound",
    "Cost",
    "Dataset",
    "Entry",
    "Group",
    "Ledger",
    "Limit",
    "Loss",
    "compose",
    "fingerprint",
    "request_digest",
]
