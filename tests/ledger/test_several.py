"""Releases of several thresholds with a ledger: the charge of each part, and no confusion of parts."""

import numpy as np
import pytest

import confide
from tests.refused import refused


@pytest.fixture
def records():
    rng = np.random.default_rng(1)
    groups = np.repeat(["low", "high"], 3000)
    return rng.random(6000) * np.where(groups == "low", 0.2, 1.0), groups


def spent(ledger):
    return ledger.account("patients").spent().epsilon


def test_groups_cost_their_maximum_and_keep_their_thresholds(ledger, records):
    scores, groups = records
    options = {"ledger": ledger, "dataset": "patients", "partition": "kind", "score": "lac"}
    released = confide.calibrate_groups(scores, groups, ["low", "high"], 0.1, 0.75, **options)
    assert released["low"].threshold < 0.25 < 0.7 < released["high"].threshold
    assert spent(ledger) == 0.75
    with pytest.warns(confide.EarlierReleaseWarning):
        again = confide.calibrate_groups(scores, groups, ["low", "high"], 0.1, 0.75, **options)
    assert {name: again[name] for name in ("low", "high")} == {name: released[name] for name in ("low", "high")}
    assert spent(ledger) == 0.75
    confide.calibrate_groups(scores, groups, ["low", "high"], 0.2, 0.5, **options)
    assert spent(ledger) == 1.25


def test_groups_need_a_partition(ledger, records):
    scores, groups = records
    with refused(confide.InputError, "ledger"):
        confide.calibrate_groups(scores, groups, ["low", "high"], 0.1, 1.0, ledger=ledger, dataset="patients")
    with refused(confide.InputError, "names"):
        confide.calibrate_groups(
            scores[:2], [1, "1"], [1, "1"], 0.1, 1.0, ledger=ledger, dataset="patients", partition="kind"
        )
    assert "patients" not in ledger.accounts()


@pytest.mark.slow
def test_levels_and_sides_add_up(ledger, records):
    scores, _ = records
    levels = confide.calibrate_levels(scores, [0.1, 0.2], 1.0, score="lac", ledger=ledger, dataset="patients")
    assert spent(ledger) == pytest.approx(1.0)
    with pytest.warns(confide.EarlierReleaseWarning):
        again = confide.calibrate_levels(scores, [0.1, 0.2], 1.0, score="lac", ledger=ledger, dataset="patients")
    assert again == levels
    assert spent(ledger) == pytest.approx(1.0)
    targets = np.random.default_rng(2).normal(size=6000)
    quantiles = np.column_stack([np.full(6000, -1.0), np.full(6000, 3.0)])
    sides = confide.calibrate_sides(quantiles, targets, 0.1, 1.0, ledger=ledger, dataset="patients")
    assert sides.low.threshold > 0 > sides.high.threshold
    assert spent(ledger) == pytest.approx(2.0)
