"""All methods by name: inflated claims, stated losses and coverage; and exact ranks without privacy."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import confide
from confide.errors import InputError
from confide.mechanisms import PrivacyStatement, privacy_statement, weak_privacy_text
from confide.mechanisms.interface import MECHANISMS, SplitConformal, split_conformal_for
from confide.mechanisms.pps import pps_for, pps_of_secret_size
from confide.mechanisms.pps_laplace import pps_laplace_for
from confide.mechanisms.privacy import sequential_composition
from confide.papers import fedcp_qq
from confide.selection import zcdp_of_range
from confide.support import decimal_text, exact_level
from tests.refused import Refused, refused

SCORES = np.random.default_rng(0).random(4000)
FEW = confide.Candidates.unit(40)
NEIGHBORS = {"pps": "replace_one", "pps-laplace": "replace_one", "none": "replace_one"}
CLAIMING = [name for name in MECHANISMS if name != "opendp-quantile"]


def run(name, scores=SCORES, **options):
    epsilon = None if name == "none" else 3.0
    options = {"candidates": FEW, "epsilon": epsilon, "neighbors": NEIGHBORS.get(name, "add_remove"), **options}
    return confide.calibrate(scores, 0.1, mechanism=name, **options)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "slopes"])
@pytest.mark.parametrize("option", [{"delta": 0.1}, {"rho": 0.1}])
def test_options_of_slopes_raise_an_error(name, option):
    with refused(confide.errors.InputError, next(iter(option))):
        run(name, **option)


def test_methods_that_need_a_public_n_raise_an_error():
    with refused(confide.errors.InputError, "neighbors"):
        run("pps-laplace", neighbors="add_remove")
    with refused(confide.errors.InputError, "mechanism"):
        run("best")


def test_losses_are_stated_in_every_unit():
    pps = run("pps").privacy
    assert pps.claimed == pytest.approx(3.0)
    assert pps.epsilon == pps.replace_one < 0.6 * pps.claimed
    assert pps.rho == zcdp_of_range(pps.epsilon)
    assert "the published analysis states 3" in str(pps)
    for name in ("noisy-histogram", "opendp-quantile"):
        secret = run(name).privacy
        assert secret.add_remove == pytest.approx(3.0)
        assert secret.replace_one == pytest.approx(6.0 if name == "opendp-quantile" else 2 * 0.95 * 3.0)
        public = run(name, neighbors="replace_one").privacy
        assert public.add_remove is None
        assert public.replace_one == pytest.approx(3.0)
    assert run("pps", records_per_person=2).privacy.claimed == pytest.approx(3.0)


@pytest.mark.parametrize("name", CLAIMING)
def test_conditional_statement(name):
    released = run(name)
    if name == "noisy-histogram":
        for one, n in ((released, 1000), (run(name, neighbors="replace_one"), None)):
            with refused(confide.errors.InputError, "delta"):
                one.conditional_coverage(0.05, n)
        return
    n = released.size.counted if name == "slopes" else None
    assert 0.7 < released.conditional_coverage(0.05, n) < 1


EVERYDAY = [("slopes", "atoms"), ("pps", "atoms"), ("none", "uniform")]
ATOMS = {
    "uniform": lambda rng, size: rng.random(size),
    "atoms": lambda rng, size: np.where(rng.random(size) < 0.85, 0.2, 0.9),
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "scores"),
    [*EVERYDAY, *((name, scores) for name in CLAIMING for scores in ATOMS if (name, scores) not in EVERYDAY)],
)
def test_every_claim_holds(name, scores):
    """One fresh point per calibration, exact binomial test at level 1e-6; the claim of the release is tested."""
    rng, hits, claim = np.random.default_rng(13), 0, 0.0
    for _ in range(300):
        points = ATOMS[scores](rng, 1001)
        released = run(name, points[1:])
        hits += points[0] <= released.threshold
        claim = released.coverage
    assert claim >= 0.9 or name == "none"
    assert stats.binomtest(hits, 300, claim, alternative="less").pvalue > 1e-6
    assert not math.isinf(released.threshold)


# --- invalid arguments, and a single candidate


TENTH = Fraction(1, 10)
MANY = np.array([2**61, 2**61, 0])


ONE, TWO = (privacy_statement(None, "replace_one", number) for number in (1, 2))
FULL = [pps_for(1000, TENTH, 1.0, 3), pps_laplace_for(1000, TENTH, 1.0, 3)]
STATED = {"mechanism": pps_for(100, TENTH, 1.0, 3), "neighbors": "replace_one", "records_per_person": 1}
REFUSED = [
    *(Refused(one.choose, {}, {"counts": MANY}, "counts", kind=InputError) for one in FULL),
    Refused(sequential_composition, {"parts": [ONE]}, {"parts": []}, "parts", kind=InputError),
    Refused(sequential_composition, {"parts": [ONE]}, {"parts": [ONE, TWO]}, "parts", kind=InputError),
    Refused(privacy_statement, STATED, {"neighbors": "add_remove"}, "neighbors", kind=InputError),
]


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_refusals(row):
    row.check()


def test_one_candidate_has_no_competitors():
    """The rank is the target rounded up, with probability 1."""
    for mechanism in (pps_of_secret_size(TENTH, 1.0, 1, 100), pps_for(100, TENTH, 1.0, 1)):
        target = mechanism.target(100) if hasattr(mechanism, "target") else mechanism.level * 100
        ranks, probabilities, bottom = mechanism.rank_law(100, 1)
        assert ranks[np.argmax(probabilities)] == -(-target // 1)
        assert probabilities.max() == pytest.approx(1.0)
        assert bottom == pytest.approx(0.0)


# --- a large epsilon is practically no protection


def statement(epsilon):
    return PrivacyStatement("add_remove", epsilon, 1, epsilon, epsilon, None)


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 10.0])
def test_other_losses_have_no_warning(epsilon):
    assert weak_privacy_text(epsilon) == statement(epsilon).weak == ""
    assert str(statement(epsilon)) == f"{decimal_text(epsilon)}-differential privacy for adding or removing one record"


def test_what_a_large_loss_means():
    said = str(statement(10.5))
    assert "practically no protection" in said
    assert f"e^10.5 = {math.exp(10.5):,.0f} fold" in said
    assert "e^1,000,000 fold" in str(statement(1e6))
    assert "practically no protection" not in str(statement(math.inf))


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e6, "1,000,000"), (1e-6, "0.000001"), (12345.678, "12,350"), (0.5, "0.5"), (0.0, "0"), (math.inf, "inf")],
)
def test_losses_are_decimal_numbers(value, text):
    assert decimal_text(value) == text


@pytest.mark.parametrize(
    ("coverage", "text"),
    [(0.9, "0.9"), (0.900005, "0.9"), (0.9012345, "0.901234"), (0.99999, "0.99999"), (0.999999, "0.999999"),
     (0.876543, "0.876543"), (1.0, "1"), (0.8999999, "0.899999")],
)  # fmt: skip
def test_coverage_is_rounded_down(coverage, text):
    assert f"at least {text} on" in str(confide.Guarantee("marginal", coverage, None, 100, None))
    assert float(text) <= coverage


HUNDREDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 18, 20, 21, 23, 25, 28, 30, 33, 35, 40, 45, 50, 55, 70, 90)
SIZES = (*range(1, 21), 24, 29, 39, 49, 59, 79, 99, 100, 124, 149, 199)
"""868 cells: all small sizes, and those at which (n+1)(1-alpha) is a whole number, where floats give wrong ranks."""


def integer_rank(hundredths, n):
    """ceil((n+1)(1-alpha)) in integers alone; None means +inf."""
    rank = -(-(n + 1) * (100 - hundredths) // 100)
    return rank if rank <= n else None


def forms(hundredths):
    """One level in every common form, also as an inexact sum of floats."""
    text = f"0.{hundredths:02d}"
    exact = Fraction(hundredths, 100), f"{hundredths}/100", Decimal(text), text, f"{hundredths}e-2"
    return *exact, float(text), np.float64(text), 1 - (100 - hundredths) / 100


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_ranks_are_those_of_exact_integers_on_the_whole_grid():
    """The threshold of the scores 1, ..., n, if they are candidates, is its own rank."""
    floats_wrong, whole = 0, confide.Candidates.of(np.arange(1.0, 200.0))
    for place, (hundredths, n) in enumerate(itertools.product(HUNDREDTHS, SIZES)):
        rank, written = integer_rank(hundredths, n), forms(hundredths)
        for alpha in written:
            mechanism = split_conformal_for(1 - exact_level("alpha", alpha), n)
            assert mechanism == (None if rank is None else SplitConformal(rank)), (alpha, n)
        scores = np.arange(n, 0.0, -1.0)
        released = confide.calibrate(scores, written[place % len(written)], mechanism="none", candidates=whole)
        assert released.threshold == (math.inf if rank is None else rank), (hundredths, n)
        assert released.guarantee.coverage == (1 if rank is None else pytest.approx(rank / (n + 1), abs=1e-15))
        floats_wrong += math.ceil((n + 1) * (1 - hundredths / 100)) != (rank or n + 1)
    assert place + 1 == 868
    assert floats_wrong == 13  # the grid contains cells that show the difference


@pytest.mark.slow
def test_silos_use_the_same_ranks():
    for hundredths, n in itertools.product(HUNDREDTHS, SIZES):
        alpha, rank = f"0.{hundredths:02d}", integer_rank(hundredths, n)
        pooled = fedcp_qq.centralised_threshold([np.arange(1.0, n + 1)], alpha)
        assert pooled == (math.inf if rank is None else rank)
        (own,) = fedcp_qq.published_ranks([n], 1 - Fraction(alpha))
        assert (own if own <= n else None) == rank


def test_coverage_is_exact_for_every_order_and_every_tie():
    """Leave-one-out over all multisets: never below k/(n+1), and equal to it without ties."""
    n, alpha = 5, Fraction(1, 3)
    mechanism = split_conformal_for(1 - alpha, n)
    rank = mechanism.rank
    for points in itertools.combinations_with_replacement(range(4), n + 1):
        covered = 0
        for i in range(n + 1):
            rest = points[:i] + points[i + 1 :]
            covered += points[i] <= mechanism.choose(np.bincount(rest, minlength=5))
        assert covered >= rank
    points = np.arange(n + 1)
    assert sum(p <= mechanism.choose(np.bincount(np.delete(points, p), minlength=n + 2)) for p in points) == rank


@pytest.mark.parametrize("score", [None, "lac", "absolute_residual"])
def test_the_threshold_is_the_least_candidate_that_reaches_the_quantile(score):
    scores = np.random.default_rng(0).random(500)
    released = confide.calibrate(scores, 0.1, mechanism="none", score=score)
    edges, exact = confide.Candidates.from_recipe(released.recipe).edges, np.sort(scores)[450]
    assert released.threshold == edges[edges >= exact][0]
    assert released.threshold - exact < 0.001


def test_release_is_marked_not_private():
    released = confide.calibrate(np.random.default_rng(0).random(500), 0.1, mechanism="none")
    assert released.coverage == pytest.approx(451 / 501)
    assert math.isinf(released.epsilon)
    assert math.isinf(released.privacy.loss("add_remove"))
    assert "NOT PRIVATE" in str(released)
    assert "NOT PRIVATE" in str(confide.Release.from_json(released.to_json()))
    assert released.conditional_coverage(0.05) < 0.9 < released.coverage_at_most() < 0.902


def test_it_is_never_a_default():
    with refused(confide.errors.InputError, "epsilon"):
        confide.calibrate([0.5, 0.6], 0.1)
    with refused(confide.errors.InputError, "epsilon"):
        confide.calibrate([0.5, 0.6], 0.1, 1.0, mechanism="none")
