"""The audit catches known defects, passes honest mechanisms, and raises false alarms as rarely as it says."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.mechanisms.privacy import NEIGHBORS
from tests.audit import others
from tests.audit.harness.coverage import DIFFICULT_LAWS, FRACTIONS, bet_against
from tests.audit.harness.exact import Laws, most_revealing_pair, worst_pair
from tests.audit.harness.library import library_subjects, slopes_subject
from tests.audit.harness.run import Effort, audit, audit_library
from tests.audit.harness.sampler import _in_cells, chi_square, repeats
from tests.audit.harness.search import lower_bound
from tests.audit.harness.subject import Claims, Subject, foreign_subject
from tests.exact import histograms, law, replaced, worst_log_ratio

SMALL = Effort(sampler=400, attack=1000, coverage=100, fresh=400)
RARE = 1e-7
"""A level at which audits of honest mechanisms fail by chance once in ten million runs."""


def failed(report):
    return {
        (finding.check, finding.detail.split(":")[0] if finding.check == "coverage" else "")
        for finding in report.findings
        if not finding.passed
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "records", "loss"),
    [
        (others.published_code, 10, 1.5),
        (others.published_code_extreme, 10, 9.0),
        (others.cut_noise_with_law, 8, 1.3),
    ],
)
def test_defects_with_a_known_law_are_found_by_enumeration(mechanism, records, loss):
    report = audit([foreign_subject(mechanism, "broken", records=records)], SMALL)
    found = next(finding for finding in report.findings if finding.check == "exact loss")
    assert not found.passed
    assert found.found > loss


@pytest.mark.slow
def test_published_mechanism_keeps_claim_and_uses_half():
    report = audit([foreign_subject(others.published_paper, "paper", records=10)], SMALL, level=RARE)
    assert report.passed, str(report)
    assert 0.5 < report.findings[0].found < 0.6


@pytest.mark.slow
@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize(
    ("mechanism", "runs"),
    [
        (others.published_code_extreme, 2000),
        (others.halved_noise, 6000),
        pytest.param(others.cut_noise, 20_000, marks=pytest.mark.slow),
        (others.private_maximum, 1000),
    ],
    ids=["published code", "halved noise", "cut noise", "private maximum"],
)
def test_attack_finds_defects_of_black_boxes(mechanism, runs):
    def black_box(scores):
        return mechanism(scores)

    subject = foreign_subject(black_box, "broken", epsilon=1.0, records=8)
    assert subject.law is None
    assert failed(audit([subject], Effort(sampler=0, attack=runs, coverage=0))) == {("search", "")}


@pytest.mark.slow
def test_opendp_quantile_fails_on_ties_only_in_coverage():
    report = audit([foreign_subject(others.opendp_quantile, "opendp")], Effort(0, 0, 100), rng=np.random.default_rng(1))
    assert ("coverage", "atoms 85/15") in failed(report), str(report)
    assert {check for check, _ in failed(report)} == {"coverage"}


@pytest.mark.slow
def test_honest_mechanisms_pass():
    subjects = [
        foreign_subject(others.honest, "honest", records=4),
        foreign_subject(others.PermuteAndFlip(tell_law=True), "honest with law", records=8),
        replace(slopes_subject("add_remove"), any_size=False),  # the long tests search there, too
        slopes_subject("replace_one"),
    ]
    report = audit(subjects, SMALL, level=RARE)
    assert report.passed, str(report)
    assert {finding.check for finding in report.findings} == {
        "exact loss",
        "sampler",
        "attack",
        "search",
        "fresh noise",
        "exact coverage",
        "coverage",
    }


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_noise_cut_by_half_in_the_library_would_be_found(neighbors):
    subject = slopes_subject(neighbors)
    laws = Laws(broken := others.weakened(subject, 1.5), broken.law)
    assert worst_pair(laws).loss > 1.0
    assert worst_pair(Laws(subject, subject.law)).loss <= 1.0 + 1e-9


@pytest.mark.slow
def test_a_wrong_law_is_found_by_the_sampler_check():
    subject = foreign_subject(others.PermuteAndFlip(cut=2.0, tell_law=True), "claims another law", records=8)
    lying = replace(subject, law=foreign_subject(others.PermuteAndFlip(tell_law=True), "x", records=8).law)
    report = audit([lying], Effort(3000, 500, 0))
    assert ("sampler", "") in failed(report)


def ideal_subject():
    """Randomized response on one record's side: its loss is exactly its claim, its coverage exactly its claim."""
    epsilon = 1.0
    keep = 1 / (1 + math.exp(-epsilon))
    rng = np.random.default_rng(12)

    def law_of(scores):
        truth = keep if scores[0] > 0.5 else 1 - keep
        return {0.4: 1 - truth, 0.6: truth}

    def draw(scores):
        chances = law_of(scores)
        return 0.6 if rng.random() < chances[0.6] else 0.4

    return Subject("ideal", Claims(epsilon, "replace_one", None), draw, law_of, (0.2, 0.8), 1, any_size=False)


@pytest.mark.slow
def test_false_alarm_rate_is_as_stated():
    """300 audits at level 0.1 of a mechanism that uses up its claim: alarms are not significantly more, at 1e-6."""
    subject, level = ideal_subject(), 0.1
    alarms = sum(not audit([subject], Effort(150, 300, 0, fresh=60), level=level).passed for _ in range(300))
    assert stats.binomtest(alarms, 300, level, alternative="greater").pvalue > 1e-6
    rng, covering = np.random.default_rng(3), Claims(None, "replace_one", 0.9)
    exact = Subject(
        "exactly 0.9",
        covering,
        lambda s: 1.0 if rng.random() < 0.9 else -1.0,
        None,
        (0.0, 1.0),
        2,
        coverage_sizes=(2, 3),
    )
    alarms = sum(not audit([exact], Effort(0, 0, 30), level=level, rng=rng).passed for _ in range(300))
    assert stats.binomtest(alarms, 300, level, alternative="greater").pvalue > 1e-6


def test_distribution_functions_of_difficult_laws():
    rng = np.random.default_rng(2)
    for name, nasty in DIFFICULT_LAWS.items():
        scores = nasty.sample(rng, 20_000)
        for t in (-0.1, 0.0, 1e-5, 0.2, 0.3, 0.5, 0.9, 0.99, 1.0):
            observed = int((scores <= t).sum())
            assert stats.binomtest(observed, 20_000, nasty.cdf(t)).pvalue > 1e-6, (name, t)


@pytest.mark.slow
def test_lower_bound_is_rarely_above_true_loss():
    rng, p, q, level = np.random.default_rng(0), 0.3, 0.3 / math.e, 0.05
    above = sum(lower_bound(rng.binomial(500, p), rng.binomial(500, q), 500, level) > 1.0 for _ in range(4000))
    assert stats.binomtest(above, 4000, level, alternative="greater").pvalue > 1e-6
    assert lower_bound(0, 5, 100, 0.1) == -math.inf
    assert 0 < lower_bound(100, 0, 100, 0.1) < math.inf


@pytest.mark.slow
def test_chi_square_is_uniform_for_true_laws():
    rng, chances = np.random.default_rng(0), {0.0: 0.7, 1.0: 0.2, 2.0: 0.0999, 3.0: 0.0001}
    values = [
        chi_square(rng.choice(4, 800, p=list(chances.values())).astype(float).tolist(), chances) for _ in range(800)
    ]
    assert stats.kstest(values, "uniform").pvalue > 1e-6
    assert chi_square([5.0], chances) == 0.0
    assert chi_square([1.0, 1.0], {1.0: 1.0}) == 1.0


def test_enumeration_agrees_with_an_independent_one():
    subject = slopes_subject("replace_one")
    mechanism = subject.draw.args[0]
    want = worst_log_ratio(
        lambda h: law(mechanism.utilities(np.array(h)), mechanism.scale),
        histograms(subject.records, 4),
        replaced,
    )
    laws = Laws(subject, subject.law)
    assert worst_pair(laws).loss == pytest.approx(want, abs=1e-10)
    telling = most_revealing_pair(laws, 20_000)
    assert telling.loss <= worst_pair(laws).loss + 1e-12


@pytest.mark.slow
def test_impossible_outputs_are_an_infinite_loss():
    def unsafe(scores):
        return float(scores.max())

    unsafe.law = lambda scores: {float(scores.max()): 1.0}
    report = audit([foreign_subject(unsafe, "maximum", epsilon=1.0, records=3)], SMALL)
    assert report.findings[0].found == math.inf


def test_cells_of_the_noise_have_their_probabilities():
    """Against the probabilities of single values, (1-a)/(1+a) a^|z|, for scales where they can be added up."""
    for scale in (0.3, 1.0, 7.3):
        draws = np.arange(-2000, 2001)
        cells, chances = _in_cells(draws, scale)
        a = math.exp(-1 / scale)
        mass = (1 - a) / (1 + a) * a ** np.abs(draws)
        added = np.bincount(np.array(cells, dtype=int), weights=mass, minlength=len(chances))
        np.testing.assert_allclose(added, list(chances.values()), atol=1e-12)


@pytest.mark.slow
def test_the_library_passes_the_audit():
    report = audit_library(SMALL, level=RARE)
    assert report.passed, str(report)
    subjects = {finding.subject.split()[0] for finding in report.findings}
    assert subjects == {"slopes", "pps", "noisy-histogram", "pps-laplace", "opendp-quantile", "opendp"}
    private = {finding.subject for finding in report.findings if finding.check == "exact loss"}
    assert private == {subject.name for subject in library_subjects()}


# --- the bet against a mean keeps its level exactly, and wins early where values scatter little


@pytest.mark.parametrize(("claim", "low", "high"), [(0.9, 0.0, 1.0), (0.9, 0.85, 0.92), (0.5, 0.2, 0.6)])
@pytest.mark.parametrize("level", [0.5, 0.05, 1e-3])
def test_level_is_kept_exactly(claim, low, high, level):
    """Two values whose mean is the claim: the chance that the wealth ever reaches 1/level, step by step."""
    chance_low, steps = (high - claim) / (high - low), 250
    stakes = FRACTIONS / (1 - claim)
    up, down = (np.log1p(stakes * (claim - value)) for value in (low, high))
    alive, alarmed = np.array([1.0]), 0.0
    for n in range(1, steps + 1):
        lows = np.arange(n + 1)
        alive = np.append(alive * (1 - chance_low), 0) + np.append(0, alive * chance_low)
        wealth = np.exp(np.multiply.outer(lows, up) + np.multiply.outer(n - lows, down)).mean(axis=1)
        alarmed += alive[wealth >= 1 / level].sum()
        alive[wealth >= 1 / level] = 0
    assert 0 < alarmed <= level
    assert alarmed + alive.sum() == pytest.approx(1, abs=1e-12)


def test_p_value_is_the_highest_wealth():
    values = np.array([0.2, 0.9, 0.1, 1.0])
    claim, best = Fraction(1, 2), 1.0
    wealth = [1.0] * len(FRACTIONS)
    for value in values:
        wealth = [w * (1 + s / 0.5 * (0.5 - value)) for w, s in zip(wealth, FRACTIONS, strict=True)]
        best = max(best, sum(wealth) / len(wealth))
    assert bet_against(values, float(claim)) == pytest.approx(1 / best)
    assert bet_against(np.array([]), 0.9) == 1.0
    assert bet_against(np.ones(50), 0.9) == 1.0


def test_small_variance_needs_few_values():
    """.885 for .9 in 200 values of standard deviation .014, where Hoeffding's inequality needs 13,000."""
    values = 0.885 + 0.014 * np.repeat([-1.0, 1.0], 100)[np.random.default_rng(0).permutation(200)]
    assert bet_against(values, 0.9) < 1e-7


@pytest.mark.slow
def test_independent_outcomes_rarely_fail():
    """p-values below .05 in at most as many of 400 series as the binomial law allows at one in a million: 44."""
    rng = np.random.default_rng(4)
    found = sum(2 * min(repeats(rng.random(120) < 0.4)) < 0.05 for _ in range(400))
    assert found <= 44
