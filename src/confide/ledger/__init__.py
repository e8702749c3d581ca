"""The privacy accountant: the privacy budget spent on each data set.

decimals.py     losses as decimal numbers
cost.py         cost of one release
loss.py         loss of several releases together: bounds with their derivations
composition.py  computes these bounds from the costs of several releases; limits
account.py      budget spent and left on one data set
names.py        equality and similarity of names of data sets
identity.py     data sets; equality of requests and of data; keyed fingerprints
decisions.py    checks of a charge against the account of its data set
location.py     location of a ledger, and its errors
schema.py       the five tables, one schema for SQLite and PostgreSQL; roles
rows.py         the rows of a transaction, with their seals
file.py         a ledger in an SQLite file: durable, atomic across processes
server.py       the same on a PostgreSQL server
database.py     transactions on either; accounts and charges as rows
ledger.py       `Ledger`, which combines them
payment.py      pays for a release: returns the earlier one, or charges before and stores after drawing
"""

from confide.ledger.account import Account, Entry
from confide.ledger.composition import Limit, check_delta, compose, epsilon_of_zcdp
from confide.ledger.cost import KINDS, Cost, Group, check_name
from confide.ledger.decimals import decimal, decimal_above, decimal_form
from confide.ledger.decisions import MOST_RELEASE, Charge, ReleaseOfCharge, as_dataset
from confide.ledger.identity import Dataset, fingerprint, is_hexadecimal, request_digest
from confide.ledger.ledger import Ledger
from confide.ledger.location import MissingRecordsError, Server, file_of, parse_location
from confide.ledger.loss import Bound, Loss
from confide.ledger.names import name_key, similar
from confide.ledger.payment import Payment, Transaction, check_stored, make_charge, make_payment, pay, pay_once
from confide.ledger.rows import Checkpoint
from confide.ledger.server import make_server_ledger

__all__ = [
    "Account", "Bound", "Charge", "Cost", "Dataset", "Entry", "Group", "Ledger", "Limit", "Loss",
    "Server", "compose",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
