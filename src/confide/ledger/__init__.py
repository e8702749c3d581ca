"""What has been spent on which data. In come costs, requests and releases; out go charges, accounts and kept releases.

cost.py         what one release costs, and figures for what many cost together, with their derivations
composition.py  from the costs of many releases to these figures
accountants.py  the figures that dp-accounting gives
events.py       the append-only records of a ledger, each sealed with the one before
account.py      records to what has been spent (a pure function)
chain.py        rows to records: every seal checked
place.py        where a ledger lies: a file, or the address of a server
store.py        records in SQLite: durable, atomic across processes, suspicious of what it reads
postgres_store.py   the same on a PostgreSQL server; postgres_schema.py: its table, guards and roles
witness.py      who remembers a ledger's head notices that it forgot
stores.py       both behind one interface; moving.py: from one place to another
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
from confide.ledger.cost import Bound, Cost, Group, Loss, decimal_form, unbounded
from confide.ledger.events import MOST_RELEASE
from confide.ledger.identity import Dataset, fingerprint, request_digest
from confide.ledger.limit import Limit
from confide.ledger.moving import move
from confide.ledger.names import name_key, similar
from confide.ledger.payment import Bill, Payment, make_payment, pay
from confide.ledger.place import Server, file_of, place_of
from confide.ledger.postgres_store import make_server_ledger
from confide.ledger.schedule import IN_WORDS, RULES, Planned, Schedule, counted
from confide.ledger.witness import check_head

__all__ = [
    "IN_WORDS", "MOST_RELEASE", "RULES", "Account", "Bill", "Bound", "Charge", "Cost", "Dataset", "Entry", "Group",
    "Ledger", "Limit", "Loss", "Payment", "Planned", "Schedule", "Server", "best_of", "budget_plan", "by_rules",
    "check_head", "compose", "counted", "decimal_form", "file_of", "fingerprint", "known", "make_payment",
    "make_server_ledger", "move", "name_key", "pay", "place_of", "plain", "request_digest", "similar", "unbounded",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
