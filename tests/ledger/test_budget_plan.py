"""`budget_plan`: the tables of the documentation, independent arithmetic, monotonicity."""

import math
import sys
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import optimize, stats

import confide
from confide.errors import InputError, InputTypeError, MissingExtraError
from confide.ledger import PlannedReleases, Schedule, best_of, budget_plan, by_rules, compose
from tests.builders import slow
from tests.exact import divergence, zcdp
from tests.refused import refused

accounting = pytest.mark.skipif(find_spec("dp_accounting") is None, reason="needs the extra 'accounting'")

PER_PERSON = {
    (12, 52): {"basic": (0.125, 0.0288), "zcdp": (0.2485, 0.0597), "pld": (0.1385, 0.0665)},
    (12, 12): {"basic": (0.125, 0.125), "zcdp": (0.2485, 0.1242), "pld": (0.143, 0.143)},
    (12, 1): {"basic": (0.125, 1.5), "zcdp": (0.2485, 0.4302), "pld": (0.1941, 0.6724)},
}
"""By releases and looks of one person within (3, 1e-6): epsilon of each (docs/howto/plan-a-budget.md)."""

RELEASES = {
    6: (0.5, 0.5, 0.498), 8: (0.375, 0.375, 0.431), 12: (0.25, 0.25, 0.352), 24: (0.125, 0.143, 0.248),
    52: (0.058, 0.094, 0.169), 100: (0.03, 0.066, 0.122),
}  # fmt: skip
"""By the number of releases alone within (3, 1e-6): epsilon of each by basic composition, PLD and zCDP."""


def spends(schedule):
    return tuple(entry.epsilon for entry in schedule.entries)


def rounded(value, like):
    """A number with as many decimal places as another."""
    return round(value, max(0, -Decimal(str(like)).as_tuple().exponent))


@accounting
@pytest.mark.parametrize(
    "planned", [(12, 52), *(pytest.param(one, marks=pytest.mark.slow) for one in [(12, 12), (12, 1)])]
)
def test_releases_and_looks_of_a_year(planned):
    releases, looks = planned
    for rule, schedule in by_rules(epsilon=3.0, releases=releases, looks=looks).items():
        stated = PER_PERSON[planned][rule]
        assert tuple(map(rounded, spends(schedule), stated)) == stated
        assert schedule.loss <= 3
        assert schedule.dp_delta == (0 if rule == "basic" else 1e-6)


@pytest.mark.slow
@accounting
@pytest.mark.parametrize("releases", slow(RELEASES, everyday=[24]))
def test_releases_alone(releases):
    found = by_rules(epsilon=3.0, releases=releases)
    assert tuple(round(spends(found[rule])[0], 3) for rule in ("basic", "pld", "zcdp")) == RELEASES[releases]


def test_what_one_person_is_in_counts_and_nothing_else():
    """Fifty-two looks at people who come once are one look per person."""
    often = budget_plan(3.0, releases=12, looks=1, rule="basic")
    once = budget_plan(3.0, releases=12, looks=52, looks_per_person=1, rule="basic")
    assert spends(once) == spends(often) == (0.125, 1.5)
    assert [(entry.count, entry.per_person) for entry in once.entries] == [(12, 12), (52, 1)]
    assert len(once.of_one_person) == 13
    assert "One person can be in all 12 releases and 1 of 52 looks." in once.statement
    assert "with up to 4 records in each" in budget_plan(3, looks=2, dp_delta=0, records_per_person=4).statement


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("counts", [(12, 1, 52), (3, 2, 0), (0, 1, 4)])
def test_basic_and_zcdp_by_independent_arithmetic(epsilon, counts):
    """Sums of exact numbers: epsilon, and rho with the other form of the exponential mechanism's loss."""
    releases, evaluations, looks = counts
    asked = {"releases": releases, "evaluations": evaluations, "looks": looks}
    basic = budget_plan(epsilon, **asked, rule="basic")
    total = sum(entry.per_person * Fraction(repr(entry.epsilon)) for entry in basic.entries)
    assert Fraction(repr(epsilon)) * (1 - Fraction(1, 10**5)) <= total <= Fraction(repr(epsilon))
    concentrated = budget_plan(epsilon, **asked, rule="zcdp")
    rho = Fraction(0)
    for entry in concentrated.entries:
        exact = Fraction(repr(entry.epsilon))
        rho += entry.per_person * (zcdp(exact) if entry.kind == "calibration" else exact**2 / 2)
    assert smallest_delta(float(rho), epsilon) <= 1e-6 * (1 + 1e-9)
    assert smallest_delta(float(rho) * 1.0001, epsilon) > 1e-6


def smallest_delta(rho, epsilon):
    """The delta of rho-zCDP at epsilon: Canonne, Kamath and Steinke (2020), Proposition 12, minimised numerically."""

    def logarithm(power):
        order = 1 + math.exp(power)
        return (order - 1) * (order * rho - epsilon) - math.log(order - 1) + order * math.log1p(-1 / order)

    best = optimize.minimize_scalar(logarithm, bounds=(-12, 12), method="bounded", options={"xatol": 1e-12})
    return math.exp(best.fun)


@accounting
@pytest.mark.parametrize(("releases", "looks"), [(2, 3), *slow([(12, 52), (12, 1)])])
def test_pld_by_exact_binomial_laws(releases, looks):
    """Randomised responses of two epsilons are two binomial counts: no discretisation; less than 1 % is left."""
    (one, other) = spends(budget_plan(3.0, releases=releases, looks=looks, rule="pld"))

    def delta(scale):
        laws = []
        for epsilon, times in ((scale * one, releases), (scale * other, looks)):
            truth, counted = 1 / (1 + math.exp(-epsilon)), np.arange(times + 1)
            laws.append((stats.binom.pmf(counted, times, truth), stats.binom.pmf(counted, times, 1 - truth)))
        p, q = (np.outer(*both) for both in zip(*laws, strict=True))
        return divergence(p, q, 3.0)

    assert delta(1.0) <= 1e-6 < delta(1.01)


@pytest.mark.parametrize("rule", ["basic", "zcdp", pytest.param("pld", marks=accounting)])
def test_more_releases_never_cost_more(rule):
    """Each epsilon is smaller if more is planned, and larger within a larger total."""

    def each(**changed):
        asked = {"epsilon": 2.0, "releases": 4, "looks": 6, "rule": rule, "dp_delta": 1e-5}
        return np.array(spends(budget_plan(**asked | changed)))

    base = each()
    for less in ({"releases": 8, "looks": 12}, {"epsilon": 1.0}):
        changed = each(**less)
        assert (changed <= base).all()
        assert (changed < base).any()
    assert (each(looks_per_person=2) >= base).all()
    assert each(share=0.8)[0] > base[0] > each(share=0.2)[0]
    if rule != "basic":
        assert (each(dp_delta=1e-9) < base).all()
    assert (each(evaluations=3)[[0, 2]] <= base).all()


def test_boundaries():
    assert spends(budget_plan(3.0, releases=1, dp_delta=0)) == (3.0,)
    assert spends(budget_plan(3.0, looks=4, rule="basic")) == (0.75,)
    assert list(by_rules(epsilon=1.0, looks=1, dp_delta=0)) == ["basic"]
    assert budget_plan(1e-6, releases=1, dp_delta=0).entries[0].epsilon == 1e-6
    assert budget_plan(1e6, releases=1, dp_delta=0).entries[0].epsilon == 1e6
    assert "practically no protection" in budget_plan(30, releases=1, dp_delta=0).statement
    kinds = [entry.kind for entry in budget_plan(1, releases=1, evaluations=1, looks=1, rule="basic").entries]
    assert kinds == ["calibration", "evaluation", "look"]
    third = budget_plan(1.0, looks=3, rule="basic")
    assert third.entries[0].epsilon == 0.333333
    assert third.loss == 0.999999


@pytest.mark.parametrize(
    ("asked", "error", "argument"),
    [
        ({}, InputError, "releases"),
        ({"releases": -1}, InputError, "releases"),
        ({"releases": 1.5}, InputTypeError, "releases"),
        ({"looks": True}, InputTypeError, "looks"),
        ({"looks": 10**7}, InputError, "looks"),
        ({"looks": 5, "looks_per_person": 6}, InputError, "looks_per_person"),
        ({"looks": 5, "looks_per_person": 0}, InputError, "looks_per_person"),
        ({"looks": 5, "releases_per_person": 1}, InputError, "releases_per_person"),
        ({"looks": 5, "rule": "rdp"}, InputError, "rule"),
        ({"looks": 5, "rule": "zcdp", "dp_delta": 0}, InputError, "dp_delta"),
        ({"looks": 5, "dp_delta": 1}, InputError, "dp_delta"),
        ({"looks": 5, "epsilon": 0}, InputError, "epsilon"),
        ({"looks": 5, "epsilon": math.nan}, InputError, "epsilon"),
        ({"looks": 5, "share": 0}, InputError, "share"),
        ({"looks": 5, "neighbors": "both"}, InputError, "neighbors"),
        ({"looks": 5, "records_per_person": 0}, InputError, "records_per_person"),
        ({"looks": 1000, "epsilon": 1e-5, "rule": "basic"}, InputError, "epsilon"),
        ({"looks": 5, "n": []}, InputError, "n"),
        ({"releases": 5, "n": "500"}, InputTypeError, "n"),
    ],
)
def test_refusals(asked, error, argument):
    with refused(error, argument):
        budget_plan(**{"epsilon": 1.0, "dp_delta": 1e-6} | asked)


def test_without_dp_accounting_there_is_no_pld(monkeypatch):
    monkeypatch.setattr(sys.modules[by_rules.__module__], "find_spec", lambda name: None)
    assert list(by_rules(epsilon=1.0, looks=3)) == ["basic", "zcdp"]
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with refused(MissingExtraError, "accounting by privacy-loss distributions"):
        budget_plan(1.0, looks=3, rule="pld", dp_delta=1e-7)


@pytest.mark.slow
def test_the_clearest_looks_without_releases():
    found = by_rules(epsilon=3.0, looks=52)
    assert best_of(found).entries[0].epsilon == max(one.entries[0].epsilon for one in found.values())
    assert best_of(by_rules(epsilon=3.0, looks=2)).rule == "basic"  # by PLD each would spend no more than 1.5, either


@pytest.mark.slow
def test_the_least_coverage_with_releases():
    """The best rule has the least excess coverage, by the plans of its releases."""
    exponential = Schedule(3.0, 1e-6, "zcdp", (PlannedReleases("calibration", 12, 12, 0.5, "exponential"),))
    flipped = Schedule(6.0, 0.0, "basic", (PlannedReleases("calibration", 12, 12, 0.5, "permute_and_flip"),))
    assert best_of({"zcdp": exponential, "basic": flipped}, n=[200]) is flipped
    finer = Schedule(9.0, 1e-6, "zcdp", (PlannedReleases("calibration", 12, 12, 1.0, "exponential"),))
    assert best_of({"basic": flipped, "zcdp": finer}, n=200) is finer
    made = finer.plan(200, 0.1)
    asked = confide.plan(0.1, 1.0, 200, n_typical=200, selector="exponential")
    assert made.expected_coverage == asked.expected_coverage


def test_how_many_records_a_look_needs():
    """22/epsilon**2 at a level of .9: the variance of the noise compared with n p (1 - p)."""
    for epsilon, records in ((1.0, 21), (0.3, 246), (0.1, 2221)):
        schedule = Schedule(3.0, 0.0, "basic", (PlannedReleases("look", 2, 2, epsilon),))
        assert schedule.records_of("look") == records
        assert records == pytest.approx(22 / epsilon**2, rel=0.08)
    assert Schedule(3.0, 0.0, "basic", (PlannedReleases("look", 2, 2, 1.0),), "replace_one").records_of("look") == 88
    assert (
        Schedule(3.0, 0.0, "basic", (PlannedReleases("look", 2, 2, 1.0),), records_per_person=2).records_of("look")
        == 88
    )


@pytest.mark.slow
def test_together_it_is_what_a_ledger_composes():
    for schedule in by_rules(epsilon=2.0, releases=2, looks=5).values():
        bounds = {
            bound.rule.lower(): bound.epsilon for bound in compose(schedule.of_one_person, schedule.dp_delta).bounds
        }
        assert schedule.loss == bounds[{"basic": "sum"}.get(schedule.rule, schedule.rule)]


COVERAGE = {
    ("permute_and_flip", 0.125): (0.957, 0.931, 0.908),
    ("exponential", 0.248481): (0.937, 0.918, 0.904),
    ("permute_and_flip", 0.1385): (0.95, 0.926, 0.907),
    ("permute_and_flip", 0.1941): (0.94, 0.919, 0.905),
}
"""Expected coverage of a release at n = 500, 1000, 5000, as in docs/howto/plan-a-budget.md."""


@pytest.mark.slow
@pytest.mark.parametrize("entry", COVERAGE)
def test_coverage_of_the_tables(entry):
    selector, epsilon = entry
    rule = "zcdp" if selector == "exponential" else "basic"
    schedule = Schedule(
        1e3, 1e-6 if rule == "zcdp" else 0.0, rule, (PlannedReleases("calibration", 12, 12, epsilon, selector),)
    )
    found = tuple(round(schedule.plan(n).expected_coverage, 3) for n in (500, 1000, 5000))
    assert found == COVERAGE[entry]
