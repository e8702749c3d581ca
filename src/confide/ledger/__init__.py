"""What has been spent on which data. In come costs, requests and releases; out go charges, accounts and kept releases.

cost.py         what one release costs, and figures for what many cost together, with their derivations
composition.py  from the costs of many releases to these figures, those of dp-accounting among them
events.py       the append-only records of a ledger, each sealed with the one before
account.py      what was spent on one data set, and what may still be
state.py        rows to accounts: one fold, every seal checked
decisions.py    from a state and what is asked to new records, or a refusal (pure functions)
log.py          where a ledger lies, what its two stores do, and how they fail
store.py        records in SQLite: durable, atomic across processes, suspicious of what it reads
postgres_store.py   the same on a PostgreSQL server; postgres_schema.py: its table, guards and roles
checkpoint.py   who remembers how far a ledger reached notices that it forgot
stores.py       the store of a place, and the move of a ledger from one to another
schedule.py     what a year may spend on one person, and its file
budget_plan.py  the dearest schedule that keeps a total, by each rule
limit.py        whether charges fit a limit, and what a schedule allows next (pure functions)
book.py         `Ledger`, which joins them
identity.py     which names are one, which requests are identical; keyed fingerprints
payment.py      whatever is released for a cost: the earlier release, or a charge before and a record after it
"""

from confide.ledger.account import Account, Entry, known, plain
from confide.ledger.book import Ledger
from confide.ledger.budget_plan import best_of, budget_plan, by_rules
from confide.ledger.checkpoint import check_head
from confide.ledger.composition import compose
from confide.ledger.cost import Bound, Cost, Group, Loss, decimal_form, unbounded
from confide.ledger.decisions import Charge
from confide.ledger.events import MOST_RELEASE
from confide.ledger.identity import Dataset, fingerprint, name_key, request_digest, similar
from confide.ledger.limit import Limit
from confide.ledger.log import Server, file_of, place_of
from confide.ledger.payment import Bill, Once, Payment, make_payment, pay
from confide.ledger.postgres_store import make_server_ledger
from confide.ledger.schedule import IN_WORDS, RULES, Planned, Schedule, counted
from confide.ledger.state import ForgottenError
from confide.ledger.stores import move

__all__ = [
    "Account", "Bound", "Charge", "Cost", "Dataset", "Entry", "Group", "Ledger", "Limit", "Loss", "Planned",
    "Schedule", "Server", "budget_plan", "check_head", "compose", "move",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
