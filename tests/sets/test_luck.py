"""Tests of the guarantee: correct releases are called broken at most at the stated rate; broken ones are detected."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from scipy import stats

import confide
from confide.errors import CoverageWarning
from confide.sets import CHANCE, count_limit, count_shortfall, has_law, mean_limit
from confide.sets.shortfall import _failure_bound
from tests.builders import slow
from tests.draws import always
from tests.exact_tests import coverage_p_value

TESTED = (200, 8780)
PUBLIC = {
    "none": {"epsilon": None, "mechanism": "none"},
    "replace_one": {"neighbors": "replace_one"},
    "small epsilon, public n": {"neighbors": "replace_one", "epsilon": 0.3},
    "delta": {"neighbors": "replace_one", "delta": 0.05},
}
SIZED = {"add_remove": {}, "small epsilon": {"epsilon": 0.3}, "rho": {"epsilon": None, "rho": 0.1}}


def made(n=2000, **options):
    return confide.calibrate(np.linspace(0, 1, n), 0.1, **{"epsilon": 1.0, "score": "lac", **options})


def most_broken(called, tested):
    """The largest number of covered records for which `called` is true; it is true for all smaller ones."""
    low, high = -1, tested
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if called(middle) else (low, middle)
    return low


@pytest.mark.filterwarnings("ignore:the threshold is:confide.CoverageWarning")
@pytest.mark.parametrize("tested", TESTED)
@pytest.mark.parametrize("n", [60, 1000])
@pytest.mark.parametrize("name", PUBLIC)
def test_a_correct_release_is_called_broken_at_most_at_the_stated_rate(name, n, tested):
    """For the worst law of the number of covered records, summed exactly; and not far below that rate."""
    released = made(n, **PUBLIC[name])
    if released.mechanism is None:
        assert count_shortfall(released, 0, tested).is_broken, "+inf covers everything"
        return
    delta = float(released.guarantee.delta or 0)
    most = most_broken(lambda hits: (s := count_shortfall(released, hits, tested)) is not None and s.is_broken, tested)
    assert 0 <= most < 0.9 * tested
    p_value = coverage_p_value(released, n, most, tested)
    assert p_value <= CHANCE + delta
    assert p_value > CHANCE / 1000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # of +inf, or of few records
@pytest.mark.parametrize(
    ("name", "counted"), slow([(name, n) for name in SIZED for n in (300, 1000, 3000)], [("add_remove", 1000)])
)
def test_with_a_noisy_number_of_records_a_finding_holds_for_all_that_it_allows(draw_with, name, counted):
    """For every number of records up to a bound, which the true one exceeds with a tenth of the stated probability."""
    draw_with(noisy_number=always(counted))
    released, tested = made(**SIZED[name]), TESTED[-1]
    size, most = released.size, most_broken(lambda hits: bool(count_shortfall(released, hits, tested)), tested)
    largest, y = size.most(CHANCE / 10), math.exp(-1 / size.scale)
    assert y ** (largest - counted + 1) / (1 + y) <= CHANCE / 10 < y ** (largest - counted - 1) / (1 + y)
    p_values = [coverage_p_value(released, n, most, tested) for n in (1, counted // 2, counted, largest)]
    assert max(p_values) <= 0.9 * CHANCE
    assert p_values[-1] > CHANCE / 1000
    assert count_shortfall(released, most, tested).from_records is None


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 1000, 20_000])
def test_with_a_secret_number_of_records_a_finding_states_the_numbers_for_which_it_holds(n):
    """For every number of records: luck with n is excluded, and not excluded, at most at the stated rate."""
    released, tested = made(delta=0.05), TESTED[-1]

    def excluded(hits):
        found = count_shortfall(released, hits, tested)
        return found is not None and found.luck == "excluded" and (found.from_records or 1) <= n

    most = most_broken(excluded, tested)
    assert most < 0 or coverage_p_value(released, n, most, tested) <= CHANCE


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_the_number_in_a_finding_is_the_smallest():
    released, hits, tested = made(mechanism="pps", n_min=100), 7240, 8765
    found = count_shortfall(released, hits, tested)
    assert 100 < found.from_records <= 1000
    fails = [_failure_bound(released, found.from_records + more)(found.high) for more in (-1, 0)]
    assert fails[0] > 0.4 * CHANCE >= fails[1]
    assert f"unless fewer than {found.from_records} records calibrated" in found.sentence
    assert count_shortfall(released, 4000, tested).from_records is None  # no luck from 64 on; promised from 100


@pytest.mark.slow(unless=("0.5-0.505-8780_0", "1.0-0.703-7180_0"))
@pytest.mark.parametrize(
    ("epsilon", "share", "tested"),
    [
        (0.5, 0.505, 8780), (1.0, 0.703, 7180), (3.0, 0.826, 8765),
        *slow((own, *month) for own in (0.5, 1.0, 3.0) for month in ((0.505, 8780), (0.703, 7180), (0.826, 8765))),
    ],
)  # fmt: skip
def test_shortfalls_measured_on_other_months_and_clinics_are_detected(epsilon, share, tested):
    found = count_shortfall(made(epsilon=epsilon), round(share * tested), tested)
    assert found.is_broken
    assert f"{100 * found.coverage:.4g} % of {tested:,} records where 90 % is promised" in found.sentence
    assert found.fields()["chance"] == CHANCE
    assert count_shortfall(made(epsilon=epsilon), round(0.88 * tested), tested) is None


def test_a_training_conditional_guarantee_allows_unlucky_calibrations():
    found = count_shortfall(made(delta=0.05), round(0.88 * 8765), 8765)
    assert (found.luck, found.is_broken, found.fields()["chance"]) == ("rare", True, CHANCE + 0.05)
    assert "where 90 % is promised with probability 0.95" in found.sentence
    assert "one of the 5 % that the promise excludes" in found.sentence


@pytest.mark.slow
def test_two_ends_divide_the_miscoverage_and_groups_add_up():
    """A bound for ends that miss different records, and for the worst groups."""
    sides = confide.calibrate_sides(np.tile([-1.0, 1.0], (2000, 1)), np.linspace(-2, 2, 2000), 0.1, 1.0)
    ends = [sides[name].coverage_failure(sides[name].size.most(CHANCE / 20)) for name in ("low", "high")]
    assert _failure_bound(sides, None)(0.86) == pytest.approx(sum(fails(0.93) for fails in ends))
    names = list("abcd")
    groups = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, groups=names * 500, names=names)
    one = groups["a"].coverage_failure(groups["a"].size.most(CHANCE / 40))
    assert _failure_bound(groups, None)(0.8) == pytest.approx(4 * one(0.8))
    found = count_shortfall(groups, 600, 1000)
    assert found.is_broken


def test_luck_for_a_shifted_population_is_unknown():
    released = made(class_weights={"a": 1, "b": 2}, labels=["a", "b"] * 1000)
    assert not has_law(released)
    found = count_shortfall(released, 500, 1000)
    assert (found.luck, found.is_broken) == ("unknown", False)
    assert "It is unknown how far an unlucky calibration may fall short of this promise." in found.sentence
    assert count_shortfall(released, 8850, 10_000) is None, "within the luck of any calibration"


def test_nothing_is_broken_without_a_guarantee():
    released = made(mechanism="opendp-quantile", candidates=confide.Candidates.unit(100), neighbors="replace_one")
    assert (released.coverage, has_law(released)) == (0.0, False)
    assert count_shortfall(released, 0, 1000) is None


def sets_of(n=3000):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([4, 2, 1], n)
    y = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released = confide.calibrate(confide.lac_score(p, y), 0.1, 1.0)
        return confide.predict_set(p, released), y


def test_coverage_of_sets_warns_of_a_broken_guarantee():
    sets, y = sets_of()
    assert confide.evaluation.coverage(sets, y).value > 0.86, "which luck explains, if it is less than promised"
    with pytest.warns(CoverageWarning):
        confide.evaluation.coverage(sets, (y + 1) % 3)
    with pytest.warns(CoverageWarning):
        sets[:2000].coverage((y[:2000] + 1) % 3)
    chosen = sets[y == 2]  # a selection of records, for which there is no guarantee
    assert confide.evaluation.coverage(chosen, y[y == 2]).value < 0.9
    for again in (copy.copy(sets), pickle.loads(pickle.dumps(sets))):  # noqa: S301
        assert (again.promised, again.calibration) == (sets.promised, None)


def test_the_limit_of_a_mean_is_hoeffdings():
    """For zeros and ones, where the probability of so small a mean is exact: less than CHANCE / 2."""
    for n, hits in ((20, 3), (200, 150), (5000, 4400)):
        limit = mean_limit(hits / n, n)
        assert stats.binom.cdf(hits, n, limit) <= CHANCE / 2
        assert limit < count_limit(hits, n) + 1.5 / np.sqrt(n)
