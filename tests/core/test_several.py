"""Several thresholds at once: levels, groups, classes, sides. Privacy and coverage by enumeration."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import confide
from confide.mechanisms.privacy import PrivacyStatement, parallel_composition, privacy_statement, sequential_composition
from confide.mechanisms.slopes import slopes_for
from confide.selection import zcdp_of_range
from tests.exact import histograms, mechanism_law


def test_parallel_composition_by_enumeration():
    """Two groups, three bins: every data set, every neighbour under both adjacencies, every pair of outputs."""
    mechanism = slopes_for(Fraction(7, 10), Fraction(2), 3, 2, "add_remove", 1.0)
    part = privacy_statement(mechanism, "add_remove", 1)
    added, replaced = (
        parallel_composition([part, part], relation).epsilon for relation in ("add_remove", "replace_one")
    )
    log = {(n, h): np.log(mechanism_law(mechanism, h)) for n in range(5) for h in histograms(n, 3)}

    def distance(one, other):
        """Worst log-ratio of the pair of thresholds, for independent runs on the two groups."""
        first, second = (log[sum(a), a] - log[sum(b), b] for a, b in zip(one, other, strict=True))
        return np.abs(first[:, None] + second[None, :]).max()

    def without(h):
        return [tuple(v - (i == b) for i, v in enumerate(h)) for b in range(3) if h[b]]

    def plus(h):
        return [tuple(v + (i == b) for i, v in enumerate(h)) for b in range(3)]

    worst_added = worst_replaced = 0.0
    for n, k in itertools.product(range(4), range(4)):
        for a, b in itertools.product(histograms(n, 3), histograms(k, 3)):
            for grown in plus(a):
                worst_added = max(worst_added, distance((a, b), (grown, b)))
            for less in without(a):
                for stay in plus(less):
                    worst_replaced = max(worst_replaced, distance((a, b), (stay, b)))
                for moved in plus(b):
                    worst_replaced = max(worst_replaced, distance((a, b), (less, moved)))
    assert worst_added <= added + 1e-12
    assert 1.1 * worst_added < worst_replaced <= replaced + 1e-12  # moving between groups costs more than one change


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_losses_add_up():
    own = {"candidates": confide.Candidates.unit(200), "neighbors": "replace_one"}
    parts = [confide.calibrate(np.linspace(0, 1, 4000), 0.1, e, score="lac", **own) for e in (0.1, 0.2)]
    total = sequential_composition([part.privacy for part in parts])
    assert total.epsilon >= sum(Fraction(p.privacy.epsilon) for p in parts)
    assert total.epsilon == pytest.approx(0.3)
    assert total.add_remove is None
    for epsilon, count in [(1.0, 3), (0.3, 7), (2.7, 2)]:
        alphas = [k / 20 for k in range(1, count + 1)]
        levels = confide.calibrate(np.linspace(0, 1, 4000), alphas, epsilon, score="lac", **own)
        assert epsilon * 0.999 < levels.privacy.epsilon <= epsilon


@pytest.mark.slow
def test_training_conditional_levels_hold_together():
    released = confide.calibrate(np.linspace(0, 1, 5000), [0.1, 0.2], 2.0, score="lac", delta=0.1)
    assert [part.guarantee.delta for part in released.parts.values()] == [0.05, 0.05]
    assert {part.guarantee.kind for part in released.parts.values()} == {"training_conditional"}


@pytest.mark.slow
def test_replace_one_halves_the_budget_of_each_group():
    scores, groups = np.linspace(0, 1, 20_000), np.arange(20_000) % 2
    released = confide.calibrate(scores, 0.1, 2.0, groups=groups, names=[0, 1], score="lac", neighbors="replace_one")
    assert released.privacy.epsilon <= 2
    assert all(part.privacy.add_remove == 1.0 for part in released.parts.values())
    assert all(part.n is None for part in released.parts.values())
    people = confide.calibrate(scores, 0.1, 2.0, groups=groups, names=[0, 1], score="lac", records_per_person=4)
    assert people.privacy.add_remove == 0.5
    assert people.privacy.epsilon == 2.0
    zcdp = confide.calibrate(scores, 0.1, groups=groups, names=[0, 1], rho=0.4, score="lac", neighbors="replace_one")
    assert 0.16 < zcdp.privacy.rho <= 0.4 + 1e-12


@pytest.mark.slow
def test_both_sides_of_cqr():
    """Skewed noise: two thresholds cover both sides, and are narrower than one for both; exact test at level 1e-6."""
    rng = np.random.default_rng(3)
    hits, width = 0, []
    for _ in range(120):
        y = rng.exponential(size=801)
        pairs = np.tile([0.3, 1.5], (801, 1))
        released = confide.calibrate_sides(pairs[1:], y[1:], 0.2, 2.0)
        (low,), (high,) = confide.predict_interval(pairs[:1], released)
        hits += low <= y[0] <= high
        width.append(high - low)
    assert stats.binomtest(hits, 120, 0.8, alternative="less").pvalue > 1e-6
    assert np.mean(width) < 2.6  # the 10 % and 90 % quantiles are 2.2 apart
    assert released.alpha == Fraction(1, 5)
    assert released.privacy.epsilon <= 2
    pair = confide.calibrate_sides(pairs, y, ("0.05", "0.15"), 8.0, share_low="0.25", delta=0.1)
    assert (pair["low"].alpha, pair["low"].guarantee.delta) == (Fraction(1, 20), 0.05)
    assert pair["low"].privacy.epsilon == 2


def test_rho_of_two_groups_is_that_of_both_ranges():
    part = PrivacyStatement("add_remove", 1.0, 1, 1.0, 1.0, zcdp_of_range(1.0))
    assert parallel_composition([part, part], "replace_one").rho == zcdp_of_range(1.0, 1.0) < 0.247
