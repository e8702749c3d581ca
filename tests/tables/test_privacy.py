"""The budget is charged before an engine is queried; public numbers and rows of a local table are checked first."""

import numpy as np
import pyarrow as pa
import pytest

from confide import BudgetError, Candidates
from confide.errors import InputError
from confide.ledger import Ledger
from confide.tables import ClassColumns, EngineError, ScoreColumn, calibrate_table
from confide.tables.failures import engine_errors_in_fixed_words
from confide.tables.ibis_table import IbisTable
from tests.refused import bad_rows, numbers, refused
from tests.tables.engines import SQLite

SCORES = np.random.default_rng(0).random(3000)
CANDIDATES = Candidates.unit(100)


GROUPED = {"by": "g", "groups": ["a", "b"], "partition": "ward"}


class QueriedError(Exception):
    """The engine was queried."""


@pytest.fixture
def remote(tmp_path):
    """The scores in an engine that counts them."""
    import ibis

    made = SQLite(tmp_path).create(pa.table({"s": SCORES, "g": ["a", "b"] * (len(SCORES) // 2)}))
    return ibis.sqlite.connect(tmp_path / "db.sqlite").table(made)


@pytest.fixture
def watched(monkeypatch, tmp_path, remote):
    """A ledger, a table, and an engine that fails when it is queried and records the earlier charges."""
    ledger = Ledger(tmp_path / "ledger.db")
    seen = []

    def fail(*arguments):
        with engine_errors_in_fixed_words():
            seen.append(ledger.accounts()["patients"].spent().epsilon)
            raise QueriedError(f"row 7 holds {SCORES[7]}")

    monkeypatch.setattr(IbisTable, "count", fail)
    monkeypatch.setattr(IbisTable, "batches", fail)
    return ledger, remote, seen


@pytest.mark.parametrize("options", [{}, GROUPED], ids=["one threshold", "all groups"])
def test_the_ledger_is_charged_before_the_engine_is_queried(watched, options):
    ledger, table, seen = watched
    ledger.set_limit("patients", 3.0)
    with refused(EngineError, "engine") as caught:
        calibrate_table(table, ScoreColumn("s"), 0.1, 1.0, **options, ledger=ledger, dataset="patients")
    assert str(SCORES[7]) not in str(caught.value)
    assert caught.value.__suppress_context__
    assert seen == [ledger.accounts()["patients"].spent().epsilon]
    assert seen[0] == 1.0 or options


def test_a_rejected_charge_prevents_the_query(watched):
    ledger, table, seen = watched
    ledger.set_limit("patients", 0.5)
    for options in ({}, GROUPED):
        with refused(BudgetError, "dataset"):
            calibrate_table(table, ScoreColumn("s"), 0.1, 1.0, **options, ledger=ledger, dataset="patients")
    with refused(InputError, "n"):
        calibrate_table(table, ScoreColumn("s"), 0.1, 0.1, neighbors="replace_one", ledger=ledger, dataset="patients")
    assert seen == []


def test_a_column_that_does_not_exist_costs_nothing(watched):
    ledger, table, seen = watched
    ledger.set_limit("patients", 3.0)
    paying = {"ledger": ledger, "dataset": "patients"}
    for source in (ScoreColumn("score"), ClassColumns("p", "y", (0, 1), "aps_deterministic")):
        with refused(InputError, "column"):
            calibrate_table(table, source, 0.1, 1.0, **paying)
    for source, group in ((ScoreColumn("score"), "g"), (ScoreColumn("s"), "ward")):
        with refused(InputError, "column"):
            calibrate_table(table, source, 0.1, 1.0, by=group, groups=["a"], partition="ward", **paying)
    assert ledger.account("patients").entries == ()
    assert seen == []


@pytest.mark.slow(unless="sqlite")
def test_a_public_number_of_rows_is_checked(engine):
    table = engine.table(pa.table({"s": SCORES}))
    options = {"neighbors": "replace_one", "candidates": CANDIDATES}
    released = calibrate_table(table, ScoreColumn("s", "lac"), 0.1, 1.0, n=3000, **options)
    assert released.n == 3000
    with refused(InputError, "n") as caught:
        calibrate_table(table, ScoreColumn("s", "lac"), 0.1, 1.0, n=2999, **options)
    assert numbers(caught) == [2999]
    assert "the number of counted records, 3000;" in str(caught.value)
    with refused(InputError, "n"):
        calibrate_table(table, ScoreColumn("s", "lac"), 0.1, 1.0, n=3000)


@pytest.mark.slow
def test_unusable_rows_of_a_local_table_are_not_charged(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_limit("patients", 3.0)
    ledger.set_limit("public", 3.0, neighbors="replace_one")
    paid = {"ledger": ledger, "dataset": "patients"}
    table = pa.table({"s": [0.5, float("nan")], "g": ["a", "b"]})
    public = {"neighbors": "replace_one", "n": 2, "dataset": "public"}
    for request in (paid, paid | GROUPED, paid | public):
        with refused(InputError, "table") as caught:
            calibrate_table(table, ScoreColumn("s", "lac"), 0.1, 1.0, **request)
        assert bad_rows(caught) == [(1, 1)]
    assert ledger.account("patients").entries == ledger.account("public").entries == ()
    with refused(InputError, "neighbors"):  # for every table
        calibrate_table(table, ScoreColumn("s", "lac"), 0.1, 1.0, neighbors="replace_one", **paid)
    with refused(BudgetError, "dataset"):
        calibrate_table(table, ScoreColumn("s", "lac"), 0.1, 4.0, **paid)
