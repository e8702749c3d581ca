"""`budget_plan`: the tables of the documentation, independent arithmetic, monotonicity."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

from confide.core import BudgetPlan, PlannedReleases, budget_plan, by_rules
from confide.errors import InputError, InputTypeError
from confide.mechanisms.slopes import slopes_for
from tests.exact import added, divergence, histograms, mechanism_law, zcdp
from tests.refused import refused

PER_PERSON = {
    (12, 52): {"basic": (0.125, 0.0288), "zcdp": (0.2485, 0.0597)},
    (12, 12): {"basic": (0.125, 0.125), "zcdp": (0.2485, 0.1242)},
    (12, 1): {"basic": (0.125, 1.5), "zcdp": (0.2485, 0.4302)},
}
"""By releases and looks of one person within (3, 1e-6): epsilon of each (docs/howto/plan-a-budget.md)."""


def spends(schedule):
    return tuple(entry.epsilon for entry in schedule.entries)


def rounded(value, like):
    """A number with as many decimal places as another."""
    return round(value, max(0, -Decimal(str(like)).as_tuple().exponent))


@pytest.mark.parametrize("planned", PER_PERSON)
def test_releases_and_looks_of_a_year(planned):
    releases, looks = planned
    for rule, schedule in by_rules(epsilon=3.0, releases=releases, looks=looks).items():
        stated = PER_PERSON[planned][rule]
        assert tuple(map(rounded, spends(schedule), stated)) == stated
        assert schedule.loss <= 3
        assert schedule.dp_delta == (0 if rule == "basic" else 1e-6)


def test_what_one_person_is_in_counts_and_nothing_else():
    """Fifty-two looks at people who come once are one look per person."""
    often = budget_plan(3.0, releases=12, looks=1, rule="basic")
    once = budget_plan(3.0, releases=12, looks=52, looks_per_person=1, rule="basic")
    assert spends(once) == spends(often) == (0.125, 1.5)
    assert [(entry.count, entry.per_person) for entry in once.entries] == [(12, 12), (52, 1)]
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
        ({"looks": 5, "rule": "pld"}, InputError, "rule"),
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


def test_how_many_records_a_look_needs():
    """22/epsilon**2 at a level of .9: the variance of the noise compared with n p (1 - p)."""

    def records(epsilon, *relation, **more):
        looks = PlannedReleases("look", 2, 2, epsilon)
        return BudgetPlan(3.0, 0.0, "basic", (looks,), *relation, **more).records_of(looks)

    for epsilon, least in ((1.0, 21), (0.3, 246), (0.1, 2221)):
        assert records(epsilon) == least
        assert least == pytest.approx(22 / epsilon**2, rel=0.08)
    assert records(1.0, "replace_one") == records(1.0, records_per_person=2) == 88


def noisy(count, epsilon, reach=25):
    """The law of a count with discrete Laplace noise on reach either way of 0 and 1, its tails in the last places."""
    z = np.arange(-reach, reach + 2) - count
    law = math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(z))
    tail = math.exp(-epsilon) / (1 + math.exp(-epsilon))
    law[0], law[-1] = tail * math.exp(epsilon * (z[0] + 1)), tail * math.exp(-epsilon * (z[-1] - 1))
    return law / law.sum()


@pytest.mark.slow(unless=("1-2.0-basic-0", "2-1.0-basic-0", "2-1.0-zcdp-0.01"))
@pytest.mark.parametrize(("rule", "delta"), [("basic", 0), ("zcdp", 1e-2)])
@pytest.mark.parametrize(("looks_per_person", "epsilon"), [(1, 2.0), (2, 1.0)])
def test_a_small_year_by_enumeration(rule, delta, looks_per_person, epsilon):
    """Two releases and three looks, a person in one or two of the looks: every database, every outcome of everything.

    A person's record is in both releases' counts and in the covered, or the missed, of the looks it is in. The joint
    law of all outcomes, with the person and without, is as close as stated, both ways round.
    """
    year = budget_plan(
        epsilon, releases=2, looks=3, looks_per_person=looks_per_person, dp_delta=delta or 1e-2, rule=rule
    )
    release, look = year.entries
    mechanism = slopes_for(Fraction(9, 10), Fraction(1, 2), 9, 1, "add_remove", release.epsilon)
    looks = [np.ones(1), np.ones(1)]
    for _ in range(looks_per_person):
        here, there = noisy(1, look.epsilon), noisy(0, look.epsilon)
        looks = [np.outer(looks[0], here).ravel(), np.outer(looks[1], there).ravel()]
    worst = 0.0
    for h in (h for n in range(4) for h in histograms(n, 3)):
        for g in added(h):
            one, other = mechanism_law(mechanism, g), mechanism_law(mechanism, h)
            both = [np.outer(one, one).ravel(), np.outer(other, other).ravel()]
            p, q = (np.outer(a, b).ravel() for a, b in zip(both, looks, strict=True))
            worst = max(worst, divergence(p, q, year.epsilon), divergence(q, p, year.epsilon))
    assert worst <= year.dp_delta + 1e-12
    assert year.loss <= year.epsilon


def test_a_year_nearly_spends_what_it_says():
    """Looks by sums cost as much as stated: at nine tenths of it the divergence is too large."""
    year = BudgetPlan(2.0, 0.0, "basic", (PlannedReleases("look", 3, 2, 1.0),))
    p, q = (np.outer(noisy(c, 1.0), noisy(c, 1.0)).ravel() for c in (1, 0))
    assert divergence(p, q, year.loss) < 1e-12
    assert divergence(p, q, 0.9 * year.loss) > 1e-3
