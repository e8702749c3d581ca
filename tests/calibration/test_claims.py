"""Claims of answers: the losses match their definition, and their expectation is bounded for every data set."""

import itertools

import numpy as np
import pytest

import confide
from tests.exact import mechanism_law
from tests.refused import refused

CANDIDATES = confide.Candidates.of([0.0, 0.25, 0.5, 0.75])


def flat(answers):
    """Lists of (confidence, false) pairs as columns."""
    claims = [(sure, wrong, i) for i, answer in enumerate(answers) for sure, wrong in answer]
    sure, wrong, of = zip(*claims, strict=True) if claims else ((), (), ())
    return np.array(sure, float), np.array(wrong, bool), np.array(of, int)


@pytest.mark.parametrize("loss", ["share", "any"])
def test_losses_follow_from_the_claims_above_the_threshold(loss):
    """All answers of up to two claims, with confidences at, between, below and above candidates."""
    claims = list(itertools.product([-1.0, 0.0, 0.1, 0.25, 0.75, 2.0], [False, True]))
    answers = [a for size in range(3) for a in itertools.combinations_with_replacement(claims, size)]
    losses = confide.false_claims_losses(*flat(answers), len(answers), CANDIDATES, loss=loss)
    for answer, row in zip(answers, losses, strict=True):
        for threshold, found in zip(CANDIDATES.edges, row, strict=True):
            kept = sum(wrong for sure, wrong in answer if sure > threshold)
            assert found == (min(kept, 1) if loss == "any" else kept / max(len(answer), 1))
    assert (np.diff(losses, axis=1) <= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["share", "any"])
def test_the_risk_is_controlled_for_every_data_set(loss):
    """All multisets of five answers, all numbers u, the law of the released threshold exactly."""
    candidates = confide.Candidates.of([0.0, 0.5, 0.75])
    plan = confide.plan(0.4, 3.0, 4, candidates=4)
    claims = [(0.3, False), (0.6, True), (0.9, True)]
    answers = [(), *[(c,) for c in claims], *itertools.combinations_with_replacement(claims, 2)]
    losses = confide.false_claims_losses(*flat(answers), len(answers), candidates, loss=loss)
    rows = np.column_stack([losses, np.zeros(len(answers))])
    kinds = sorted({tuple(row) for row in rows})
    laws, worst = {}, 0.0
    for data in itertools.combinations_with_replacement(kinds, 5):
        risk = 0.0
        for half in itertools.product((0.25, 0.75), repeat=5):  # losses are 0, 1/2 and 1
            critical = [next(j for j, value in enumerate(row) if value <= u) for row, u in zip(data, half, strict=True)]
            counts = np.bincount(critical, minlength=4)
            for i, row in enumerate(data):
                rest = counts.copy()
                rest[critical[i]] -= 1
                key = tuple(int(v) for v in rest)
                laws.setdefault(key, mechanism_law(plan.mechanism, key))
                risk += float(np.dot(laws[key], row))
        worst = max(worst, risk / 5 / 2**5)
    assert 0.15 < worst <= 0.4 + 1e-12


def test_a_release_keeps_few_false_claims():
    """The confidence of a claim is its probability to be true."""
    rng = np.random.default_rng(0)
    sure = rng.random((6000, 4))
    false, of = rng.random(sure.shape) > sure, np.arange(6000).repeat(4)
    table = confide.Candidates.unit(101)
    losses = confide.false_claims_losses(sure.ravel(), false.ravel(), of, 6000, table)
    released = confide.calibrate_losses(losses[:4000], table, 0.1, 1.0, loss="share of false claims")
    kept = (false & (sure > released.threshold))[4000:].mean(axis=1)
    assert 0.06 < kept.mean() < 0.14  # six standard errors, of calibration, test and noise together
    assert released.loss == "share of false claims"


def test_invalid_arguments_raise():
    good = {"confidences": [0.5, 0.75], "false": [True, False], "answers": [0, 1], "n": 2, "candidates": CANDIDATES}
    for wrong, kind, argument in [
        ({"confidences": [0.5, np.nan]}, confide.InputError, "confidences"),
        ({"false": [1, 0]}, confide.InputError, "false"),
        ({"false": [True]}, confide.InputError, "false"),
        ({"answers": [0, 2]}, confide.InputError, "answers"),
        ({"answers": [0.0, 1.0]}, confide.InputError, "answers"),
        ({"n": -1}, confide.InputError, "n"),
        ({"n": 1.5}, confide.InputError, "n"),
        ({"loss": "among those kept"}, confide.InputError, "loss"),
        ({"candidates": [0.5]}, confide.InputTypeError, "candidates"),
    ]:
        with refused(kind, argument):
            confide.false_claims_losses(**(good | wrong))
    for n in (0, 3):
        losses = confide.false_claims_losses([], np.zeros(0, bool), np.zeros(0, int), n, CANDIDATES)
        assert losses.tolist() == [[0.0] * 4] * n
