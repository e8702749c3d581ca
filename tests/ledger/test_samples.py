"""Contents of a ledger that only version 0.1 could write are refused."""

import sqlite3
from contextlib import closing

import pytest

from confide.errors import FormatError
from confide.ledger import Cost, Ledger
from confide.ledger.events import ChargedEvent, OpenedEvent, write_event
from tests.ledger.test_events import REQUEST, TOKEN, add
from tests.refused import refused


def test_a_file_of_schema_1_is_refused_and_unchanged(tmp_path):
    path = tmp_path / "budget.db"
    Ledger(path).charge("patients", Cost(1.0, "add_remove", "slopes"), REQUEST)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version=1")
    before = path.read_bytes()
    with refused(FormatError, "ledger.schema"):
        Ledger(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


CHARGED = ChargedEvent("caf\u00e9", TOKEN, REQUEST, Cost(1.0, "add_remove", "slopes"))


@pytest.mark.parametrize("event", [OpenedEvent("Cafe\u0301", "add_remove", None), CHARGED])
def test_another_spelling_and_a_charge_before_the_key_are_refused(tmp_path, event):
    path = tmp_path / "budget.db"
    Ledger(path).set_limit(CHARGED.dataset, 1.0)
    add(path, write_event(event))
    with refused(FormatError, "records"):
        Ledger(path)
