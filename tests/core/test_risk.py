"""Risk control: the reduction to critical thresholds, by enumeration, by simulation, and in its sets."""

import itertools

import numpy as np
import pytest
from scipy import stats

import confide
from confide.core.risk import critical_thresholds, false_negative_thresholds
from tests.designs import planned, terms
from tests.exact import mechanism_law
from tests.refused import refused


@pytest.mark.slow
def test_risk_is_controlled_for_every_data_set():
    """All multisets of five records with losses 1, 1/2, 0 over four candidates, and all choices of u: Theorem R1.

    The expected loss is computed from the losses themselves, not from the critical thresholds.
    """
    m, points = 4, 5
    plan = planned(terms("0.4", m, 3.0), 4)
    # A record is (a, b): its loss is 1 before candidate a, 1/2 from a to before b, and 0 from b on.
    records = list(itertools.combinations_with_replacement(range(m), 2))
    laws = {}

    def law(h):
        if h not in laws:
            laws[h] = mechanism_law(plan.mechanism, h)
        return laws[h]

    worst = 0.0
    for data in itertools.combinations_with_replacement(records, points):
        risk = 0.0
        for coin in itertools.product((0, 1), repeat=points):  # u above or below 1/2: the critical candidate is a or b
            critical = [r[c] for r, c in zip(data, coin, strict=True)]
            counts = np.bincount(critical, minlength=m)
            for i, (a, b) in enumerate(data):
                rest = counts.copy()
                rest[critical[i]] -= 1
                below = np.concatenate([[0.0], np.cumsum(law(tuple(int(v) for v in rest)))])
                risk += (below[a] + below[b]) / 2  # expected loss: 1 below a, 1/2 between
        worst = max(worst, risk / points / 2**points)
    assert 0.2 < worst <= 0.4 + 1e-12


def test_critical_thresholds_have_the_loss_as_their_tail():
    """P(S > t) = L(t): exactly, on a fine grid of u."""
    rng = np.random.default_rng(0)
    candidates = confide.Candidates.unit(21)
    u = (np.arange(10_000) + 0.5) / 10_000
    for _ in range(10):
        p, truth = rng.random((1, 7)), rng.random((1, 7)) < 0.5
        scores = false_negative_thresholds(np.tile(p, (len(u), 1)), np.tile(truth, (len(u), 1)), u=u)
        losses = [[np.sum(truth & (1 - p > t)) / max(truth.sum(), 1) for t in candidates.edges]]
        general = critical_thresholds(np.tile(losses, (len(u), 1)), candidates, u=u)
        for t, loss in zip(candidates.edges, losses[0], strict=True):
            assert np.mean(scores > t) == pytest.approx(loss, abs=2e-4)
            assert np.mean(general > t) == pytest.approx(loss, abs=2e-4)


def test_seeded_numbers_would_break_the_loss():
    """Data that agree with the seed: without the first record every other record has its neighbour's number.

    Records whose number is at least 1/2 have two true labels, and the number selects the likelier one. If numbers
    belong to the records, the privacy loss is at most epsilon; by position it is 39.
    """
    n, epsilon, u = 400, 1.0, np.random.default_rng(0).random(400)
    p = np.tile([0.9, 0.1], (n, 1))
    truth = np.column_stack([np.ones(n), u >= 0.5]).astype(bool)
    candidates = confide.Candidates.of([0.05, 0.2, 0.5, 0.95])
    mechanism = confide.plan(0.1, epsilon, n, candidates=candidates.size).mechanism

    def law(first, numbers):
        scores = false_negative_thresholds(p[first:], truth[first:], u=numbers)
        return np.log(mechanism_law(mechanism, confide.ScoreHistogram.from_scores(scores, candidates).counts))

    tied = np.abs(law(0, u) - law(1, u[1:])).max()
    seeded = np.abs(law(0, confide.ExperimentalUniforms(0)) - law(1, confide.ExperimentalUniforms(0))).max()
    assert tied <= epsilon * (1 + 1e-9)
    assert seeded > 10


@pytest.mark.slow
def test_false_negative_rate_by_simulation():
    """One fresh record per release: its mean loss is below the level (normal bound at 1e-4), and sets are small."""
    rng = np.random.default_rng(1)
    losses, sizes = [], []
    for _ in range(400):
        p = rng.random((401, 8))
        truth = rng.random(p.shape) < p
        released = confide.calibrate_false_negatives(p[1:], truth[1:], 0.1, 2.0)
        sets = confide.predict_labels(p[:1], released)
        losses.append(confide.evaluation.false_negative_rate(sets, truth[:1])[0])
        sizes.append(sets.sizes[0])
    assert np.mean(losses) - stats.norm.isf(1e-4) * np.std(losses) / 20 <= 0.1
    assert np.mean(sizes) < 6.5  # all labels would be 8; the best threshold has 5.5
    assert released.risk <= 0.1 + 1e-12
    assert "false_negative_rate" in str(released)


def test_an_invalid_bound_raises_before_anything_is_charged(tmp_path):
    ledger, candidates = confide.Ledger(tmp_path / "ledger.db"), confide.Candidates.unit(4)
    given = {"loss": "false_negative_rate", "bound": 0.5, "ledger": ledger, "dataset": "a"}
    with refused(confide.errors.InputError, "bound"):
        confide.calibrate_losses(np.zeros((9, 3)), candidates, 0.1, 1.0, **given)
    assert not ledger.accounts()


def test_invalid_losses_raise():
    candidates = confide.Candidates.unit(4)
    for losses in ([[0.5, 0.6, 0.1]], [[0.5, 0.4, 0.1], [2.0, 0.1, 0.0]], [[np.nan, 0.4, 0.1]], [[0.5, 0.4]]):
        with refused(confide.errors.InputError, "losses"):
            critical_thresholds(losses, candidates, u=np.full(len(losses), 0.5))
    with refused(confide.errors.InputError, "truth"):
        confide.calibrate_false_negatives([[0.5]], [[2]], 0.1, 1.0, u=[0.5])
    with refused(confide.errors.InputTypeError, "calibration"):
        confide.predict_labels([[0.5]], None)
