"""A release without privacy makes an account's total infinite; beyond a limit it raises an error."""

import json
import math

import numpy as np
import pytest

import confide
from confide import BudgetError, Ledger
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # +inf is drawn now and then

SCORES = np.random.default_rng(0).random(300)


def bare(ledger, scores=SCORES):
    return confide.calibrate(scores, 0.1, mechanism="none", ledger=ledger, dataset="patients")


def test_without_a_limit_the_total_is_infinite(ledger):
    confide.calibrate(SCORES, 0.1, 1.0, neighbors="replace_one", ledger=ledger, dataset="patients")
    bare(ledger)
    account = ledger.account("patients")
    for loss in (account.spent(), account.spent(1e-6)):
        assert loss.epsilon == math.inf
        assert str(loss) == "NOT PRIVATE: 1 of 2 releases is without privacy, which no sum can hold"
    assert account.remaining() is None
    document = json.loads(json.dumps(account.as_json(), allow_nan=False))
    assert document["spent"] == "+inf"
    assert [entry["epsilon"] for entry in document["entries"]] == [account.entries[0].cost.epsilon, "+inf"]


def test_a_limit_set_afterwards_has_nothing_left(ledger):
    bare(ledger)
    account = ledger.set_limit("patients", 1e12, neighbors="replace_one")
    assert account.remaining() == 0.0
    with refused(BudgetError, "dataset"):
        confide.calibrate(SCORES, 0.1, 1.0, neighbors="replace_one", ledger=ledger, dataset="patients")


@pytest.mark.parametrize("limit", [1e12, (1e12, 1e-6)])
def test_a_limit_refuses_it_before_the_data_are_touched(tmp_path, limit, monkeypatch):
    ledger = Ledger(tmp_path / "limited.db", limit=limit)
    monkeypatch.setattr(confide.ScoreHistogram, "from_scores", lambda *_: pytest.fail("the data were touched"))
    with refused(BudgetError, "dataset"):
        bare(ledger)
    assert ledger.accounts() == {}
    ledger.set_limit("patients", limit, neighbors="replace_one")
    with refused(BudgetError, "dataset"):
        bare(ledger)
    assert ledger.account("patients").entries == ()
