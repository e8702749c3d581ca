"""Requests are compared by numbers, not by types: another type returns the earlier release at no cost."""

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow
import pytest

import confide
from confide.core import calibrate_losses
from confide.errors import InputTypeError
from confide.evaluation import Evaluation
from confide.ledger import Ledger
from confide.tables import ScoreColumn
from confide.watching import Watch

SCORES = np.random.default_rng(0).random(400)
WARDS = np.random.default_rng(1).integers(0, 2, 400)
TABLE = pyarrow.table({"s": SCORES})
RELEASE = confide.calibrate(SCORES, 0.1, 1.0, score="lac")
NUMBERS = (float, int, np.int64, np.float32, Fraction, Decimal)
INTEGERS = (int, np.int64)

pytestmark = [
    pytest.mark.filterwarnings("ignore::confide.errors.EarlierReleaseWarning"),
    pytest.mark.filterwarnings("ignore::confide.CoverageWarning"),
]


def looked(folder, **asked):
    """A first look with a new state file: a repeated request must be answered from the ledger."""
    state = folder / f"watch-{len(list(folder.iterdir()))}.json"
    return confide.watch(
        TABLE, ScoreColumn("s"), RELEASE, state=state, look="a", **{"epsilon": 1.0, "batch": 300} | asked
    )


PAID = {
    "calibrate epsilon": lambda x, folder, **payer: confide.calibrate(SCORES, 0.1, epsilon=x, **payer),
    "calibrate rho": lambda x, folder, **payer: confide.calibrate(SCORES, 0.1, rho=x, **payer),
    "calibrate alpha": lambda x, folder, **payer: confide.calibrate(SCORES, x / 4, 1.0, delta=x / 8, **payer),
    "calibrate unit": lambda x, folder, **payer: confide.calibrate(SCORES, 0.1, 1.0, unit=x, **payer),
    "levels": lambda x, folder, **payer: confide.calibrate(SCORES, [x / 8, x / 4], epsilon=x, **payer),
    "groups": lambda x, folder, **payer: confide.calibrate(
        SCORES, 0.1, epsilon=x, groups=WARDS, names=[0, 1], partition="ward", **payer
    ),
    "sides": lambda x, folder, **payer: confide.calibrate_sides(
        np.stack([SCORES, SCORES + 1], axis=1), SCORES, 0.2, epsilon=x, **payer
    ),
    "risk": lambda x, folder, **payer: calibrate_losses(
        np.linspace(1, 0, 9)[None].repeat(300, 0), confide.Candidates.unit(10), 0.5, x, bound=x, u=SCORES[:300],
        loss="cost", **payer,
    ),
    "recalibrate": lambda x, folder, **payer: confide.recalibrate(RELEASE, SCORES, epsilon=x, **payer),
    "evaluate": lambda x, folder, **payer: confide.evaluate(RELEASE, scores=SCORES, epsilon=x, **payer),
    "evaluate confidence": lambda x, folder, **payer: confide.evaluate(
        RELEASE, scores=SCORES, epsilon=1.0, confidence=x / 4, **payer
    ),
    "watch": lambda x, folder, **payer: looked(folder, epsilon=x, **payer),
    "watch tolerance": lambda x, folder, **payer: looked(folder, tolerance=x / 4, error=x / 4, **payer),
}  # fmt: skip

COUNTED = {
    "calibrate": lambda k, folder, **payer: confide.calibrate(SCORES, 0.1, 2.0, records_per_person=k, n_min=k, **payer),
    "evaluate": lambda k, folder, **payer: confide.evaluate(
        RELEASE, scores=SCORES, epsilon=2.0, records_per_person=k, **payer
    ),
    "evaluate n": lambda k, folder, **payer: confide.evaluate(
        RELEASE, scores=SCORES[:2], epsilon=2.0, neighbors="replace_one", n=k, **payer
    ),
    "watch": lambda k, folder, **payer: looked(folder, batch=k, looks=k, records_per_person=k, **payer),
}


def requests(ask, values, folder):
    """The number of requests in a ledger after one request with each of these values."""
    ledger = Ledger(folder / "budget.db")
    for value in values:
        ask(value, folder, ledger=ledger, dataset="d")
    return [entry.request for entry in ledger.account("d").entries]


@pytest.mark.slow
@pytest.mark.parametrize("name", PAID)
def test_numbers_of_every_type_are_one_request(name, tmp_path):
    """Parts released together are several requests, each made once."""
    first = requests(PAID[name], [2.0], tmp_path)
    assert requests(PAID[name], [kind(2) for kind in NUMBERS], tmp_path) == first


@pytest.mark.parametrize("ask", COUNTED.values(), ids=COUNTED)
def test_integers_of_every_type_are_one_request(ask, tmp_path):
    """Counts must be integers; a float raises an error before any charge."""
    assert len(requests(ask, [kind(2) for kind in INTEGERS], tmp_path)) == 1
    with pytest.raises(InputTypeError):
        requests(ask, [2.0], tmp_path)


def test_what_cannot_be_written_is_refused_before_it_is_drawn(tmp_path, monkeypatch, draw_with):
    """Should a number slip through all checks, writing it fails first: nothing is drawn or charged."""
    ledger = Ledger(tmp_path / "budget.db")
    monkeypatch.setattr(Evaluation, "to_json", lambda self: json.dumps(np.int64(1)))
    monkeypatch.setattr(Watch, "to_json", lambda self: json.dumps(np.int64(1)))
    draw_with(noisy_counts=pytest.fail)
    for payer in ({}, {"ledger": ledger, "dataset": "d"}):
        with pytest.raises(TypeError):
            confide.evaluate(RELEASE, scores=SCORES, epsilon=1.0, **payer)
        with pytest.raises(TypeError):
            looked(tmp_path, **payer)
    assert not ledger.accounts()
