"""The privacy accountant: the privacy budget spent on each data set.

cost.py         cost of one release, and bounds on the cost of several with their derivations
composition.py  computes these bounds from the costs of several releases; limits
events.py       append-only records of a ledger, linked by a hash chain
account.py      budget spent and left on one data set
state.py        folds rows into accounts and checks every hash
decisions.py    computes new records from a state and a request, or raises an error (pure functions)
log.py          location of a ledger, interface of its two stores, and their errors
store.py        store in SQLite: durable, atomic across processes, checks everything it reads
postgres_store.py   the same on a PostgreSQL server; postgres_schema.py: its table, guards and roles
stores.py       opens the store of a location
ledger.py       `Ledger`, which combines them
identity.py     equality of names and requests; keyed fingerprints
payment.py      pays for a release: returns the earlier one, or charges before and stores after drawing
"""

from confide.ledger.account import Account, Entry, account_as_json, find_account, loss_text
from confide.ledger.composition import Limit, check_delta, compose, epsilon_of_zcdp
from confide.ledger.cost import KINDS, Bound, Cost, Group, Loss, decimal, decimal_above, decimal_form, unbounded
from confide.ledger.decisions import Charge
from confide.ledger.events import MOST_RELEASE
from confide.ledger.identity import Dataset, fingerprint, is_hexadecimal, name_key, request_digest, similar
from confide.ledger.ledger import Ledger
from confide.ledger.log import Server, file_of, parse_location
from confide.ledger.payment import Payment, SingleRelease, Transaction, check_stored, make_payment, pay
from confide.ledger.postgres_store import make_server_ledger
from confide.ledger.state import Checkpoint, MissingRecordsError, check_checkpoint

__all__ = [
    "Account", "Bound", "Charge", "Cost", "Dataset", "Entry", "Group", "Ledger", "Limit", "Loss",
    "Server", "compose",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
