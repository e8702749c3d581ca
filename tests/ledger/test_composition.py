"""The accounting of many releases, against exact divergences; cells with a bound per table; nothing shows n.

A limit of K records of a person holds in one table. A person in the tables of two cells gives K records to each, so
the losses add up, and their maximum would understate them (docs/theory-composition.md, Lemma B1).
"""

import itertools
import json
import math
import warnings

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import confide
from confide import Candidates, ConfideError, Dataset, Ledger
from confide.errors import InputError, InputTypeError
from confide.evaluation import PrivateRequest
from confide.ledger import Account, Cost, Group, Limit, compose
from confide.ledger.composition import Totals, epsilon_of_zcdp
from confide.ledger.decimals import decimal
from confide.mechanisms import MECHANISMS, NEIGHBORS
from confide.mechanisms.privacy import PrivacyStatement
from confide.selection import zcdp_of_range
from confide.tables import (
    ContributionBound,
    ScoreColumn,
    calibrate_table,
    evaluate_table_privately,
    recalibrate_table,
    score_histogram,
)
from tests.builders import grid
from tests.draws import always
from tests.exact import added, divergence, histograms, law, mechanism_law, worst_log_ratio
from tests.refused import Refused, refused

ADD = "add_remove"


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
        account = Account("a", ADD, None, Limit(6.0), totals=Totals.of(costs))
        left = account.remaining()
        assert account.allows(Cost(left, ADD, "m"))
        assert not account.allows(Cost(math.nextafter(left, 9), ADD, "m"))
        missed += decimal(float(exact)) < exact
    assert missed > 20, "the nearest float would have served"


def test_decimal_sums_stay_as_short_as_they_are():
    tenths = [Cost(0.1, ADD, "m")] * 3
    assert str(compose(tenths)) == "0.3-differential privacy: 3 releases, the epsilons add up"
    account = Account("a", ADD, None, Limit(1.0), totals=Totals.of(tenths))
    assert account.remaining() == 0.7
    thirds = compose([Cost(1 / 3, ADD, "m")] * 3)
    assert str(thirds).startswith("0.9999999999999999-differential privacy")
    assert [bound.derivation[:10] for bound in compose(tenths[:1], 1e-6).bounds] == ["1 release", "1 release "]


@pytest.mark.parametrize(("epsilon", "times"), [(0.1, 30), (0.5, 10), (0.5, 50), (1.0, 3), (2.0, 4)])
@pytest.mark.parametrize("dp_delta", [1e-9, 1e-6, 1e-3])
def test_every_bound_holds_for_randomized_response(epsilon, times, dp_delta):
    """By the exact laws of the number of true labels, under both neighbours."""
    truth = 1 / (1 + math.exp(-epsilon))
    p, q = (stats.binom.pmf(np.arange(times + 1), times, share) for share in (truth, 1 - truth))
    bounds = compose([Cost(epsilon, ADD, "m")] * times, dp_delta).bounds
    assert {bound.rule for bound in bounds} == {"sum", "zCDP"}
    for bound in bounds:
        # A loss of exactly `bound.epsilon` has delta 0; rounding of the laws leaves 1e-14.
        assert divergence(p, q, bound.epsilon) <= bound.dp_delta + 1e-14, bound


@pytest.mark.parametrize("times", [2, 4, 6])
@pytest.mark.parametrize("dp_delta", [1e-6, 1e-2])
def test_every_bound_holds_for_the_exponential_mechanism(times, dp_delta):
    """For a neighbouring pair of laws whose range is used up."""
    epsilon = 1.0
    p, q = (law(np.array([first, 0.0, -1.0, -3.0]), 1.0) for first in (0.0, -epsilon))
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


GOOD = {"epsilon": 1.0, "neighbors": ADD, "mechanism": "m"}
REFUSED = [
    *(Refused(Cost, GOOD, {"epsilon": own}, "epsilon", kind=InputError) for own in (-1.0, math.nan, -math.inf, 2e12)),
    Refused(Cost, GOOD, {"epsilon": "1"}, "epsilon", kind=InputTypeError),
    Refused(Cost, GOOD, {"rho": math.inf}, "rho", kind=InputError),
    Refused(Cost, GOOD, {"neighbors": "replace_one", "group": Group("a", "b")}, "group", kind=InputError),
    Refused(compose, {}, {"costs": [Cost(1.0, ADD, "m"), Cost(1.0, "replace_one", "m")]}, "costs", kind=InputError),
    *(Refused(compose, {"costs": []}, {"dp_delta": own}, "dp_delta", kind=InputError) for own in (-0.1, 1.0, True)),
]


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_costs_are_checked(row):
    row.check()


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


PEOPLE = ContributionBound("person", 1, ("visit",))
CANDIDATES = Candidates.unit(3)
NORTH, SOUTH = Dataset("patients", ("region", "north")), Dataset("patients", ("region", "south"))

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")


def records(people, bins):
    """Three visits of each of these people, all with the score of a bin."""
    scores = np.repeat((np.asarray(bins) + 0.5) / 3, 3)
    names = np.repeat(people, 3)
    visits = np.tile(np.arange(3), len(people))
    return pa.table({"person": pa.array(names, pa.int64()), "visit": visits, "s": pa.array(scores, pa.float64())})


def released(table, dataset, ledger, **options):
    return calibrate_table(
        table, ScoreColumn("s", "lac"), 0.5, 1.0, candidates=CANDIDATES, people=PEOPLE, ledger=ledger, dataset=dataset,
        **options,
    )  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "budget.db")


def counts(table):
    return tuple(score_histogram(table, ScoreColumn("s", "lac"), CANDIDATES, people=PEOPLE).counts.tolist())


@pytest.mark.slow
def test_what_is_stated_is_no_less_than_what_a_person_in_two_cells_loses(ledger):
    """By the exact laws of two releases, over all small tables and scores of the person."""
    first = released(records(np.arange(9), [0] * 9), NORTH, ledger)
    assert sum(counts(records([1, 2], [0, 1]))) == 2  # a person with three visits counts once, in each table

    def one(h):
        return mechanism_law(first.mechanism, h)

    def both(h):
        """The cells may hold the same scores, and their noise is independent."""
        return np.outer(one(h), one(h)).ravel()

    tables = [h for n in range(5) for h in histograms(n, 3)]
    alone, together = (worst_log_ratio(law, tables, added) for law in (one, both))
    assert alone <= 1.0 < together <= 2.0
    assert together == pytest.approx(2 * alone)

    assert ledger.account("patients").spent().epsilon == 1.0  # of one cell; the maximum would state as much of both
    with refused(InputError, "dataset"):
        released(records([0, 1], [0, 1]), SOUTH, ledger)
    assert ledger.account("patients").spent().epsilon == 1.0
    released(records([0, 1], [0, 1]), Dataset("patients", ("region, in the south", "south")), ledger)
    assert ledger.account("patients").spent().epsilon == 2.0 >= together


@pytest.mark.slow
def test_people_in_one_cell_pay_the_maximum(ledger):
    """With `one_cell` cells cost their maximum; the request is the same, so it is recognised."""
    first = released(records([0, 1], [0, 1]), NORTH, ledger)
    released(records([2, 3], [0, 1]), Dataset("patients", SOUTH.group, one_cell=True), ledger)
    assert ledger.account("patients").spent().epsilon == 1.0
    with pytest.warns(confide.errors.EarlierReleaseWarning):
        assert released(records([0, 1], [0, 1]), Dataset("patients", NORTH.group, one_cell=True), ledger) == first


@pytest.mark.slow
def test_a_table_that_is_divided_is_bounded_as_a_whole(ledger):
    """Groups of one table: a person has at most K records in all of them, so they cost their maximum, every month."""
    table = records(np.arange(40), [0, 1] * 20).append_column("region", pa.array(["north", "south"] * 60))
    groups = {"by": "region", "groups": ["north", "south"], "partition": "region"}
    first = released(table, "patients", ledger, **groups)
    whole = {"people": PEOPLE, "by": "region", "partition": "region", "ledger": ledger, "dataset": "patients"}
    recalibrate_table(first, table, ScoreColumn("s", "lac"), **whole)
    assert ledger.account("patients").spent().epsilon == 2.0
    north = table.filter(pa.compute.equal(table["region"], "north"))
    with refused(InputError, "dataset"):  # bounded in other records than before
        released(north, "patients", ledger, by="region", groups=["north"], partition="region", n_min=2)
    assert ledger.account("patients").spent().epsilon == 2.0


def evaluated(table, dataset, ledger):
    release = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    asking = PrivateRequest(1.0, ledger=ledger, dataset=dataset)
    return evaluate_table_privately(table, ScoreColumn("s", "lac"), release, asking, people=PEOPLE)


def renewed(table, dataset, ledger):
    release = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    return recalibrate_table(release, table, ScoreColumn("s", "lac"), people=PEOPLE, ledger=ledger, dataset=dataset)


@pytest.mark.slow
@pytest.mark.parametrize("release", [released, renewed, evaluated])
def test_every_front_refuses_the_second_cell(release, ledger):
    """The error comes before any charge; a release about all records adds up."""
    released(records([0, 1], [0, 1]), NORTH, ledger)
    with refused(InputError, "dataset"):
        release(records([0, 1], [0, 1]), SOUTH, ledger)
    assert ledger.account("patients").spent().epsilon == 1.0
    release(records([0, 1], [0, 1]), "patients", ledger)
    assert ledger.account("patients").spent().epsilon == 2.0


def test_the_check_is_within_the_charge(ledger, monkeypatch):
    """Another process may charge another cell after the limit was checked: the transaction checks again."""
    from confide.ledger import Transaction

    look = Transaction.check_limit

    def then_another_charges(transaction):
        look(transaction)
        ledger.charge(SOUTH, confide.ledger.Cost(1.0, "add_remove", "m", None, SOUTH.group), "0" * 64)

    monkeypatch.setattr(Transaction, "check_limit", then_another_charges)
    with refused(InputError, "dataset"):
        released(records([0, 1], [0, 1]), NORTH, ledger)


SIZES = (0, 1, 30, 31, 500)
SCORES = np.random.default_rng(0).random(max(SIZES))
UNIT = confide.Candidates.unit(20)


def groups(scores, **options):
    options |= {"partition": "kind"}
    return confide.calibrate(scores, 0.1, 0.5, groups=np.full(len(scores), "a"), names=["a", "b"], **options)


def sides(scores, **options):
    return confide.calibrate_sides(np.tile([0.2, 0.8], (len(scores), 1)), scores, 0.1, 0.5, **options)


def levels(scores, **options):
    return confide.calibrate(scores, [0.1, 0.2], 0.5, **options)


def one(scores, **options):
    return confide.calibrate(scores, 0.1, **options)


def output(folder, n, options, ask=one):
    """Everything except the threshold: statements, errors, charges, stored texts and the budget left."""
    ledger = Ledger(folder / f"{n}.db")
    ledger.set_limit("patients", 1.0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", confide.CoverageWarning)  # says that the threshold is +inf
            released = ask(SCORES[:n], **{"candidates": UNIT, **options}, ledger=ledger, dataset="patients")
        stated = without_thresholds(json.loads(released.to_json()))
    except ConfideError as error:
        stated = f"{type(error).__name__}: {error}"
    account = ledger.account("patients")
    charged = [(entry.cost, entry.request, entry.release is not None) for entry in account.entries]
    return stated, charged, account.remaining()


def without_thresholds(document):
    drawn = ("threshold", "counts", "sha256")
    if isinstance(document, dict):
        return {key: without_thresholds(part) for key, part in document.items() if key not in drawn}
    return [without_thresholds(part) for part in document] if isinstance(document, list) else document


@pytest.mark.slow(unless="slopes-add_remove")
@pytest.mark.parametrize(("mechanism", "neighbors"), grid(list(MECHANISMS), NEIGHBORS))
def test_no_output_depends_on_n(tmp_path, draw_with, mechanism, neighbors):
    draw_with(noisy_number=always(1010))
    epsilon = {} if mechanism == "none" else {"epsilon": 0.5}
    found = [output(tmp_path, n, {"mechanism": mechanism, "neighbors": neighbors, **epsilon}) for n in SIZES]
    assert all(each == found[0] for each in found)
    if neighbors == "replace_one" or mechanism == "none":
        assert "publishes the number of records" in found[0][0]
        assert found[0][1:] == ([], 1.0)


ASKED = [(one, more, 1) for more in ({"delta": 0.1}, {"records_per_person": 2}, {"n_min": 40})]
ASKED += [(levels, {}, 1), (groups, {}, 2), (sides, {}, 2)]


@pytest.mark.slow
@pytest.mark.parametrize(("ask", "more", "charges"), ASKED)
def test_no_output_depends_on_n_for_other_requests(tmp_path, draw_with, ask, more, charges):
    draw_with(noisy_number=always(1010))
    options = {"epsilon": 0.5, **more} if ask is one else more
    found = [output(tmp_path, n, options, ask) for n in SIZES]
    assert all(each == found[0] for each in found)
    assert len(found[0][1]) == charges


def losses(scores, candidates, **options):
    return confide.calibrate_losses(np.zeros((30, 19)), candidates, 0.1, 0.5, u=scores, loss="mine", **options)


@pytest.mark.parametrize("ask", [levels, sides, losses])
def test_no_release_of_several_thresholds_publishes_n(tmp_path, ask):
    ledger = Ledger(tmp_path / "b.db")
    ledger.set_limit("patients", 1.0)
    with refused(InputError, "neighbors"):
        ask(SCORES[:30], ledger=ledger, dataset="patients", candidates=UNIT, neighbors="replace_one")
    assert ledger.account("patients").entries == ()
