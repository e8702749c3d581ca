"""What the page looks up is what the library says, and the laws of coverage are laws."""

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

import confide
from confide.planning import choice
from confide.reports.cost import cost_facts, grid, price, sentence
from confide.reports.guarantee_text import SURE, laws, plan_laws
from confide.support import describe
from tests.builders import slow
from tests.calibrations import OPTIONS as ALL
from tests.calibrations import released
from tests.exact_tests import LEVEL
from tests.reports import pages

OPTIONS = [{}, {"neighbors": "replace_one"}, {"records_per_person": 3}, {"delta": 0.1, "neighbors": "replace_one"}]


@pytest.mark.slow
@pytest.mark.parametrize("options", [*OPTIONS[1::2], *slow(OPTIONS[::2])])
def test_page_shows_numbers_of_plans(options, monkeypatch):
    few = {"LEVELS": (Fraction(1, 5),), "LOSS_REACH": (0.5, 2.5), "SIZE_REACH": (0.4, 2.0)}
    for name, value in few.items():
        monkeypatch.setattr(f"confide.reports.cost.{name}", value)
    chosen = confide.plan(alpha=0.1, epsilon=2.0, n=500, candidates=200, **options)
    made = grid(chosen.request, 500)
    a, e, n = made.chosen
    assert (made.alphas[a], made.epsilons[e], made.records[n]) == (Fraction(1, 10), 2.0, 500)
    said = price(made, "set", explorer=True)
    explored = said["explorer"]["data"]["said"]
    assert len(explored) == len(made.places()) == len(made.alphas) * len(made.epsilons) * len(made.records)
    rng = np.random.default_rng(0)
    for i in (made.places().index(made.chosen), *rng.integers(len(explored), size=12).tolist()):
        a, e, n = made.places()[i]
        asked = confide.plan(made.alphas[a], made.epsilons[e], made.records[n], candidates=200, **options)
        sentence_shown, *values = explored[i]
        shown = {name: text for (name, _), text in zip(cost_facts(asked), values, strict=True)}
        expected = f"{100 * asked.expected_coverage:.2f}\u00a0%"
        assert sentence_shown == sentence(asked)
        assert (
            f"{made.records[n]:,} records and ε = {made.epsilons[e]:g}, expect a coverage of {expected}"
            in sentence_shown
        )
        (with_n, always), rows = describe(asked).parts[:2], str(asked)
        assert shown == dict((*with_n.facts, always.facts[0]))
        assert all(re.search(rf"  {re.escape(name)} +{re.escape(text)}\n", rows) for name, text in shown.items())
        assert shown["expected coverage"].startswith(f"{asked.expected_coverage:.4f}, ")
        assert shown["records needed"].startswith(f"about {asked.records_needed:,};")
        assert ("crosses every gap" in shown["gaps in the scores"]) == (asked.mechanism is None)


@pytest.mark.slow
def test_tables_of_cost_equal_plans():
    chosen = confide.plan(alpha=0.05, epsilon=1.0, n=1000).request
    made = grid(chosen, 1000)
    figures = price(made, "set", explorer=False)["figures"]
    (table,) = figures[1].tables
    for row, n in zip(table.rows, made.records, strict=True):
        asked = confide.plan(alpha=0.05, epsilon=1.0, n=n, candidates=chosen.candidates)
        alone = asked.nonprivate_rank / (n + 1) if asked.nonprivate_rank <= n else 1.0
        percents = (f"{100 * share:.2f}\u00a0%" for share in (asked.expected_coverage, alone))
        assert row == (f"{n:,}", next(percents), f"{asked.expected_excess:.1f}", next(percents))
    assert [row[0] for row in figures[0].tables[0].rows] == [f"{epsilon:g}" for epsilon in made.epsilons]


@pytest.mark.slow
@pytest.mark.xdist_group("released")
@pytest.mark.parametrize("name", slow(sorted(ALL), everyday=["add_remove"]))
def test_pages_with_all_their_plans_are_small(name):
    """Tests of other parts of pages make few plans (fixture `few_plans`)."""
    assert len(confide.report(released(name)).html.encode()) < 120_000


@pytest.mark.slow
def test_pages_of_several_thresholds_with_all_their_plans_are_small():
    several = pages.several()
    assert several
    for release, evaluation in several.values():
        assert len(confide.report(release, evaluation=evaluation).html.encode()) < 120_000


def test_ladders_stay_within_range_of_plans():
    for epsilon, n, people in ((1e-6, 1, 1), (1e6, 2**48, 1), (3e-3, 7, 1000)):
        request = confide.plan(0.1, epsilon, n, records_per_person=people, candidates=2).request
        made = grid(replace(request, neighbors="replace_one", n=n), n)
        assert min(made.epsilons) >= 1e-6 * people * 0.999
        assert max(made.epsilons) <= 1e6
        assert min(made.records) >= 1
        assert max(made.records) <= 2**48


@pytest.mark.xdist_group("released")
@pytest.mark.parametrize(
    "name", ["add_remove", "rho", "people", *slow(["replace_one", "exponential", "delta", "one candidate"])]
)
def test_laws_are_distribution_functions_with_numbers_of_library(name):
    cal = released(name)
    assert laws(cal)
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


@pytest.mark.slow
def test_page_of_plans_needs_few_decisions():
    """Counted, not timed: decisions at a loss below 1 are shared, and a ladder has two to nine steps."""
    made = grid(confide.plan(0.1, 1.0, 1000, neighbors="replace_one", candidates=50).request, 1000)
    assert (len(made.alphas), len(made.epsilons), len(made.records)) == (4, 5, 6)
    for place in made.places():
        made[place]
    decided = choice._chosen.cache_info().misses
    other = grid(confide.plan(0.1, 0.5, 2000, neighbors="replace_one", candidates=50).request, 2000)
    for place in other.places():
        other[place]
    assert choice._chosen.cache_info().misses - decided <= 60  # of 120 plans


def test_page_without_known_law():
    assert laws(released("too few records")) == ()
    cal = confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0, mechanism="opendp-quantile")
    assert laws(cal) == ()
