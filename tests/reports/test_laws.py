"""The laws of coverage on a page are laws, and pages are small."""

import numpy as np
import pytest
from scipy.stats import beta

import confide
from confide.reports.guarantee_text import SURE, laws, plan_laws
from tests.calibrations import released
from tests.exact_tests import LEVEL


@pytest.mark.slow
@pytest.mark.xdist_group("released")
@pytest.mark.parametrize("name", ["add_remove", "rho", "people", "replace_one", "delta", "one candidate"])
def test_laws_are_distribution_functions_with_numbers_of_library(name):
    cal = released(name)
    for law in laws(cal):
        for below in (law.bound, law.expected):
            assert np.all(np.diff(below) >= -1e-12)
            assert 0 <= min(below) <= max(below) <= 1 + 1e-12
        n = None if cal.n is not None else law.n
        for p, reached in zip(SURE, law.reached, strict=True):
            assert reached == pytest.approx(cal.conditional_coverage(round(1 - p, 2), n), abs=3e-7)
        assert law.missed == cal.coverage_failure(n)(float(1 - cal.alpha))


@pytest.mark.parametrize("n", [200, 1000, 5000])
def test_mean_on_uniform_scores_is_expected_coverage(n):
    planned = confide.plan(alpha=0.1, epsilon=1.0, n=n, neighbors="replace_one")
    (law,) = plan_laws(planned)
    below, levels = np.array(law.expected), np.array(law.levels)
    mean = levels[-1] - np.sum((below[1:] + below[:-1]) / 2 * np.diff(levels))
    assert mean == pytest.approx(planned.expected_coverage, abs=2e-3 / np.sqrt(n))


def test_law_without_privacy_is_beta():
    cal = confide.calibrate(np.linspace(0, 1, 500), 0.1, mechanism="none")
    (law,) = laws(cal)
    assert np.allclose(law.bound, beta.cdf(law.levels, cal.mechanism.rank, 501 - cal.mechanism.rank), atol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_bound_holds_for_drawn_thresholds():
    """A thousand calibrations on uniform scores: no more of them below a level than the law says, at LEVEL."""
    from scipy.stats import binom

    rng = np.random.default_rng(0)
    candidates, n = confide.Candidates.unit(500), 300
    drawn = [
        confide.calibrate(rng.random(n), 0.1, 1.0, candidates=candidates, neighbors="replace_one") for _ in range(400)
    ]
    (law,) = laws(drawn[0])
    thresholds = np.array([min(one.threshold, 1.0) for one in drawn])
    for level, below in zip(law.levels, law.bound, strict=True):
        assert binom.sf(np.sum(thresholds < level) - 1, len(drawn), min(below, 1.0)) > LEVEL / len(law.levels)
    expected = np.interp(0.5, law.expected, law.levels)
    assert np.median(thresholds) == pytest.approx(expected, abs=0.02)


def test_page_without_known_law():
    assert laws(released("too few records")) == ()
    cal = confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0, mechanism="opendp-quantile")
    assert laws(cal) == ()
