"""The accounting of many releases, against exact divergences of the product laws."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from confide.errors import InputError, InputTypeError
from confide.ledger import Account, Cost, Entry, Group, Limit, compose
from confide.ledger.composition import Totals, epsilon_of_zcdp
from confide.ledger.cost import decimal
from confide.mechanisms.privacy import PrivacyStatement
from confide.selection import zcdp_of_range
from tests.exact import divergence, law
from tests.refused import refused

ADD = "add_remove"


def repeated_responses(epsilon, times):
    """Exact laws of the number of true labels in `times` randomized responses, under both neighbours."""
    truth = 1 / (1 + math.exp(-epsilon))
    count = np.arange(times + 1)
    return stats.binom.pmf(count, times, truth), stats.binom.pmf(count, times, 1 - truth)


def exponential_pair(epsilon):
    """A neighbouring pair of laws of an exponential mechanism whose range is used up."""
    return law(np.array([0.0, 0.0, -1.0, -3.0]), 1.0), law(np.array([-epsilon, 0.0, -1.0, -3.0]), 1.0)


@pytest.mark.slow
def test_totals_are_rounded_up_and_what_is_left_down():
    """As decimal forms, and to the next float: the rest can be spent, and the next float cannot."""
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(200):
        costs = [Cost(float(one), ADD, "m") for one in rng.random(5)]
        exact = sum(cost.exact for cost in costs)
        total = compose(costs).epsilon
        assert decimal(math.nextafter(total, 0)) < exact <= decimal(total)
        account = Account("a", ADD, None, Limit(6.0), tuple(Entry("", "", "", cost, None) for cost in costs))
        left = account.remaining()
        assert account.allows(Cost(left, ADD, "m"))
        assert not account.allows(Cost(math.nextafter(left, 9), ADD, "m"))
        missed += decimal(float(exact)) < exact
    assert missed > 20, "the nearest float would have served"


def test_decimal_sums_stay_as_short_as_they_are():
    tenths = [Cost(0.1, ADD, "m")] * 3
    assert str(compose(tenths)) == "0.3-differential privacy: 3 releases, the epsilons add up"
    account = Account("a", ADD, None, Limit(1.0), tuple(Entry("", "", "", cost, None) for cost in tenths))
    assert account.remaining() == 0.7
    thirds = compose([Cost(1 / 3, ADD, "m")] * 3)
    assert str(thirds).startswith("0.9999999999999999-differential privacy")


@pytest.mark.parametrize(("epsilon", "times"), [(0.1, 30), (0.5, 10), (0.5, 50), (1.0, 3), (2.0, 4)])
@pytest.mark.parametrize("dp_delta", [1e-9, 1e-6, 1e-3])
def test_every_bound_holds_for_randomized_response(epsilon, times, dp_delta):
    p, q = repeated_responses(epsilon, times)
    bounds = compose([Cost(epsilon, ADD, "m")] * times, dp_delta).bounds
    assert {bound.rule for bound in bounds} == {"sum", "zCDP"}
    for bound in bounds:
        # A loss of exactly `bound.epsilon` has delta 0; rounding of the laws leaves 1e-14.
        assert divergence(p, q, bound.epsilon) <= bound.dp_delta + 1e-14, bound


@pytest.mark.parametrize("times", [2, 4, 6])
@pytest.mark.parametrize("dp_delta", [1e-6, 1e-2])
def test_every_bound_holds_for_the_exponential_mechanism(times, dp_delta):
    epsilon = 1.0
    p, q = exponential_pair(epsilon)
    many = [np.array([math.prod(point) for point in itertools.product(one, repeat=times)]) for one in (p, q)]
    bounds = compose([Cost(epsilon, ADD, "m", rho=zcdp_of_range(epsilon))] * times, dp_delta).bounds
    assert {bound.rule for bound in bounds} == {"sum", "zCDP"}
    for bound in bounds:
        assert divergence(*many, bound.epsilon) <= bound.dp_delta + 1e-14
        assert divergence(*reversed(many), bound.epsilon) <= bound.dp_delta + 1e-14


@pytest.mark.parametrize("rho", [1e-12, 1e-6, 1e-3, 0.125, 1.0, 10.0, 49.9, 50.1, 1e3, 1e9])
@pytest.mark.parametrize("dp_delta", [1e-12, 1e-6, 0.01, 0.5])
def test_zcdp_conversion_is_valid_for_the_gaussian_mechanism(rho, dp_delta):
    """The Gaussian mechanism with rho = 1/(2 sigma^2) is exactly rho-zCDP, and its delta is known in closed form."""
    epsilon, mu = epsilon_of_zcdp(rho, dp_delta), math.sqrt(2 * rho)
    log_second = epsilon + stats.norm.logcdf(-epsilon / mu - mu / 2)
    delta = stats.norm.cdf(-epsilon / mu + mu / 2) - math.exp(min(log_second, 0.0))
    assert delta <= dp_delta
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / dp_delta)) * (1 + 1e-9)


def test_disjoint_groups_cost_their_maximum_exactly():
    """The joint law of releases about two groups, over all neighbours: one record is in one of them."""
    utilities = {"a": np.array([-8.0, 0.0, -2.0]), "b": np.array([-9.0, 0.0, -1.0])}
    spent = {"a": 0.8, "b": 0.5}
    before = {name: law(u, 1.0) for name, u in utilities.items()}
    after = {name: law(u - [spent[name], 0, 0], 1.0) for name, u in utilities.items()}
    costs = [Cost(e, ADD, "m", None, Group("part", name)) for name, e in spent.items()]
    claimed = compose(costs).epsilon
    assert claimed == 0.8
    for changed in ("a", "b"):
        joint = np.outer(*(before[name] for name in ("a", "b")))
        other = np.outer(*((after if name == changed else before)[name] for name in ("a", "b")))
        assert np.abs(np.log(joint / other)).max() <= claimed + 1e-12
    both = np.outer(after["a"], after["b"])  # a record in both cells would break it: cells must be disjoint
    assert np.abs(np.log(np.outer(before["a"], before["b"]) / both)).max() > claimed


@pytest.mark.slow
def test_partitions_add_up_and_their_cells_do_not():
    def cost(epsilon, *group):
        return Cost(epsilon, ADD, "m", None, Group(*group) if group else None)

    costs = [cost(1.0), cost(0.5, "sex", "f"), cost(0.25, "sex", "m"), cost(0.5, "sex", "m"), cost(2.0, "age", "old")]
    assert compose(costs).epsilon == 1.0 + 0.75 + 2.0
    assert Totals.of(costs).sums.zcdp == (1 + (1 / 4 + 1 / 16) + 4) / 2
    for bound in compose(costs, 1e-6).bounds:
        alone = compose([cost(1.0), cost(0.25), cost(0.5), cost(2.0)], 1e-6).bounds
        assert bound.epsilon == pytest.approx(next(b.epsilon for b in alone if b.rule == bound.rule), rel=1e-9)


def test_huge_losses_do_not_overflow():
    assert compose([Cost(1e6, ADD, "m")] * 3, 1e-6).epsilon == 3e6


def test_costs_are_checked():
    for wrong in (-1.0, math.nan, -math.inf, 2e12):
        with refused(InputError, "epsilon"):
            Cost(wrong, ADD, "m")
    with refused(InputError, "rho"):
        Cost(1.0, ADD, "m", math.inf)
    assert not Cost(math.inf, ADD, "m").private
    with refused(InputTypeError, "epsilon"):
        Cost("1", ADD, "m")
    with refused(InputError, "group"):
        Cost(1.0, "replace_one", "m", None, Group("a", "b"))
    with refused(InputError, "costs"):
        compose([Cost(1.0, ADD, "m"), Cost(1.0, "replace_one", "m")])
    for wrong_delta in (-0.1, 1.0, math.nan, True):
        with refused(InputError, "dp_delta"):
            compose([], wrong_delta)


def test_a_public_n_has_no_finite_loss_for_adding_one():
    public = PrivacyStatement("replace_one", 1.0, 1, None, 1.0, None)
    assert Cost.of(public, "m").epsilon == 1.0
    with refused(InputError, "neighbors"):
        Cost.of(public, "m", ADD)
    secret = PrivacyStatement(ADD, 1.0, 2, 0.5, 0.6, 0.125)
    assert Cost.of(secret, "m", "replace_one") == Cost(1.2, "replace_one", "m", zcdp_of_range(1.2))


@pytest.mark.parametrize("rho", [5e-324, 1e-310, 1e-300, 1e-100])
def test_the_smallest_losses_have_an_epsilon(rho):
    """Also values whose inverse overflows."""
    assert 0 <= epsilon_of_zcdp(rho, 1e-6) <= 1e-12
