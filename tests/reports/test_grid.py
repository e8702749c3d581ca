"""What the page looks up is what the library says, and the laws of coverage are laws."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

import confide
from confide.planning import choice
from confide.reports.plan_page import grid
from confide.reports.promise import SURE, laws, plan_laws
from tests.calibrations import released
from tests.exact_tests import LEVEL

OPTIONS = [{}, {"neighbors": "replace_one"}, {"records_per_person": 3}, {"delta": 0.1, "neighbors": "replace_one"}]


@pytest.mark.some(1)
@pytest.mark.everyday("options1", "options3")
@pytest.mark.parametrize("options", OPTIONS)
def test_the_grid_holds_the_numbers_of_plans(options, monkeypatch):
    few = {"LEVELS": (Fraction(1, 5),), "LOSS_REACH": (0.5, 2.5), "SIZE_REACH": (0.4, 2.0)}
    for name, value in few.items():
        monkeypatch.setattr(f"confide.reports.plan_page.{name}", value)
    chosen = confide.plan(alpha=0.1, epsilon=2.0, n=500, candidates=200, **options)
    made = grid(chosen.request, 500)
    fields = made.fields()
    assert [made.alphas[made.chosen[0]], made.epsilons[made.chosen[1]], made.records[made.chosen[2]]] == [
        Fraction(1, 10),
        2.0,
        500,
    ]
    rng = np.random.default_rng(0)
    shape = (len(made.alphas), len(made.epsilons), len(made.records))
    for place in (made.chosen, *zip(*(rng.integers(size, size=12).tolist() for size in shape), strict=True)):
        a, e, n = place
        asked = confide.plan(made.alphas[a], made.epsilons[e], made.records[n], candidates=200, **options)
        i = (a * shape[1] + e) * shape[2] + n
        assert fields["coverage"][i] == round(100 * asked.expected_coverage, 2)
        assert fields["excess"][i] == round(asked.expected_excess, 1)
        assert fields["most"][i] == round(100 * asked.coverage_at_most, 2)
        assert fields["needed"][a * shape[1] + e] == asked.records_needed
        assert fields["all"][i] == round(100 * asked.chance_of_all, 1)
        assert fields["beyond"][i] == round(100 * asked.chance_beyond, 1)
        assert fields["desert"][i] == (round(asked.desert) if asked.mechanism else None)
        assert fields["target"][i] == (round(asked.target_rank, 2) if asked.mechanism else None)


def test_ladders_stay_inside_of_what_a_plan_accepts():
    for epsilon, n, people in ((1e-6, 1, 1), (1e6, 2**48, 1), (3e-3, 7, 1000)):
        request = confide.plan(0.1, epsilon, n, records_per_person=people, candidates=2).request
        made = grid(replace(request, neighbors="replace_one", n=n), n)
        assert min(made.epsilons) >= 1e-6 * people * 0.999
        assert max(made.epsilons) <= 1e6
        assert min(made.records) >= 1
        assert max(made.records) <= 2**48


@pytest.mark.some(3)
@pytest.mark.xdist_group("released")
@pytest.mark.parametrize(
    "name", ["add_remove", "replace_one", "exponential", "rho", "delta", "people", "one candidate"]
)
def test_laws_are_distribution_functions_and_their_numbers_those_of_the_library(name):
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
def test_the_mean_on_evenly_spread_scores_is_the_expected_coverage(n):
    planned = confide.plan(alpha=0.1, epsilon=1.0, n=n, neighbors="replace_one")
    (law,) = plan_laws(planned)
    below, levels = np.array(law.expected), np.array(law.levels)
    mean = levels[-1] - np.sum((below[1:] + below[:-1]) / 2 * np.diff(levels))
    assert mean == pytest.approx(planned.expected_coverage, abs=2e-3 / np.sqrt(n))


def test_without_privacy_the_law_is_the_beta_law_of_the_rank():
    cal = confide.calibrate(np.linspace(0, 1, 500), 0.1, mechanism="none")
    (law,) = laws(cal)
    assert np.allclose(law.bound, beta.cdf(law.levels, cal.mechanism.rank, 501 - cal.mechanism.rank), atol=1e-12)


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_the_bound_holds_for_thresholds_that_were_drawn():
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


@pytest.mark.slow
def test_a_page_of_plans_is_made_in_seconds_also_where_every_n_has_its_own_decision():
    """Counted, not timed: decisions at a loss below 1 are shared, and a ladder has two to nine steps."""
    made = grid(confide.plan(0.1, 1.0, 1000, neighbors="replace_one", candidates=50).request, 1000)
    assert (len(made.alphas), len(made.epsilons), len(made.records)) == (4, 5, 6)
    decided = choice._chosen.cache_info().misses
    grid(confide.plan(0.1, 0.5, 2000, neighbors="replace_one", candidates=50).request, 2000)
    assert choice._chosen.cache_info().misses - decided <= 60  # of 120 plans


def test_no_law_where_the_library_has_none():
    assert laws(released("too few records")) == ()
    cal = confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0, mechanism="opendp-quantile")
    assert laws(cal) == ()
