"""P-COQS over a list: its law, its loss by enumeration, the sampler, and the text of its releases."""

import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import confide
from confide.ledger import Cost, Ledger, compose
from confide.mechanisms import pcoqs_for, published_candidates, published_pcoqs_for
from confide.mechanisms.pcoqs import STEPS, NoisySearch, gaussian_scale, lattice_tail
from confide.papers import pcoqs as program
from confide.releases import facts_of
from confide.reports.protection import protection
from confide.selection import gaussian_map
from tests.exact import assert_drawn_from, histograms, renyi, replaced
from tests.mechanisms.test_methods import resealed
from tests.refused import refused

SCORES = np.random.default_rng(3).random(1000)
BOTH = ("pcoqs", "pcoqs-published")


def run(name, scores=SCORES, **options):
    options = {"rho": 0.5, "neighbors": "replace_one", "score": "lac", **options}
    return confide.calibrate(scores, 0.1, mechanism=name, **options)


def independent_law(counts, rank, scale):
    """Four finite candidates and +inf: the tree of three counts written out, with Gaussian tails of mpmath."""
    below = np.cumsum(counts)

    def reached(j):
        return 1 - mpmath.ncdf((rank - int(below[j])) / mpmath.mpf(scale))

    left, right = reached(1), reached(2)
    return [left * reached(0), left * (1 - reached(0)), (1 - left) * right, (1 - left) * (1 - right), 0]


def test_the_law_is_that_of_the_halvings():
    """Up to the step of the lattice, 1e-7; probabilities sum to 1 up to rounding."""
    for counts in ((1, 2, 3, 4, 5), (0, 0, 9, 0, 0), (5, 0, 0, 0, 4)):
        search = NoisySearch(rank=7, halvings=2, scale=1.7)
        law = search.law(np.array(counts))
        assert abs(law.sum() - 1) < 1e-12
        assert np.allclose(law, [float(p) for p in independent_law(counts, 7, 1.7)], atol=2e-7, rtol=0)


def test_tails_of_the_lattice_are_sums_over_it():
    """With noise of 2000 points of the lattice, at distances of some points."""
    steps = np.arange(-24_000, 24_001)
    weights = np.exp(-((steps / 2000) ** 2) / 2)
    for distance in (-1500, 0, 1, 4321):
        for beyond in (False, True):
            there = steps > distance if beyond else steps >= distance
            found = lattice_tail(distance / STEPS, 2000 / STEPS, beyond=beyond)
            assert found == pytest.approx(math.fsum(weights[there]) / math.fsum(weights), abs=1e-12)


@pytest.mark.parametrize(("m", "n"), [(5, 4), (3, 12)])
def test_zcdp_by_enumeration(m, n):
    """D_a <= rho a for every pair of neighbours and every order, and a large part of it is attained."""
    search = pcoqs_for(n, Fraction(2, 3), 0.5, m)
    laws = {h: search.law(np.array(h)) for h in histograms(n, m)}
    worst = max(
        renyi(laws[h], laws[g], order) / order for h in laws for g in replaced(h) for order in (1.001, 2, 8, 64)
    )
    assert 0.4 * search.zcdp < worst <= search.zcdp + 1e-6


def test_no_pure_epsilon_holds_for_every_n():
    """One record changes the odds of an answer more, the farther the count is from the target."""
    found = []
    for n in (10, 20, 40):
        search = pcoqs_for(n, Fraction(9, 10), 0.5, 3)
        one, other = (search.law(np.array(counts)) for counts in ((1, n - 1, 0), (0, n, 0)))
        found.append(math.log(one[0] / other[0]))
    assert 8 < found[0] < found[1] - 8 < found[2] - 24


@pytest.mark.parametrize("rho", [1e-6, 0.125, 0.5, 3.0, 1e4])
def test_the_scale_of_the_noise_gives_the_loss_that_opendp_states(rho):
    for made in (pcoqs_for(1000, Fraction(9, 10), rho, 1000), published_pcoqs_for(1000, Fraction(9, 10), rho)):
        assert rho * (1 - 1e-12) < made.zcdp <= rho
        assert made.halvings * gaussian_map(STEPS, made.scale * STEPS) <= made.zcdp * (1 + 1e-12)
    assert gaussian_scale(34, 0.5) == pytest.approx(program.noise_scale(0.5), rel=1e-12)


def test_the_sampler_matches_the_law():
    counts = np.array([3, 0, 5, 1, 2, 0, 1])
    search = pcoqs_for(12, Fraction(2, 3), 0.3, 7)
    assert_drawn_from(search, counts, search.law(counts), 600)


@pytest.mark.parametrize("m", [1, 2, 3, 17, 1000])
def test_it_draws_as_many_counts_as_its_loss_is_stated_for(m, monkeypatch):
    scales = []
    monkeypatch.setattr("confide.mechanisms.pcoqs.noisy_integer", lambda value, scale: scales.append(scale) or value)
    counts = np.zeros(m, np.int64)
    counts[m // 2] = 10
    search = pcoqs_for(10, Fraction(9, 10), 0.5, m)
    assert search.choose(counts) == max(0, min(m // 2, m - 2))
    assert len(scales) <= search.count_queries(m) <= search.halvings
    assert set(scales) <= {search.scale * STEPS}


def test_as_published_it_answers_like_the_program():
    """The laws of the rounded answers over a list of ten thousandths and over the interval itself."""
    search, over = published_pcoqs_for(1000, Fraction(9, 10), 0.5), published_candidates()
    for scores in (SCORES, SCORES / 200, SCORES**0.02, np.repeat([0.1, 0.9], [850, 150])):
        law = search.law(np.bincount(np.searchsorted(over.edges, scores), minlength=over.size))
        answers, chances = program.answer_law(scores, 0.1, 0.5)
        theirs = np.zeros(over.size)
        theirs[np.searchsorted(over.edges, answers)] = chances
        assert abs(law - theirs).sum() / 2 < 0.02


def test_what_it_covers():
    """Exact laws at n = 1000, rho = 0.5: small scores are not covered as published; on a list, ties are covered."""
    small, tied = SCORES / 200, np.repeat([0.1, 0.9], [850, 150])
    assert run("pcoqs-published", small).threshold == 0  # except with probability 1e-6: see tests/papers/test_pcoqs.py
    listed = confide.Candidates.of(np.arange(1, 1001) / 1000)
    for scores, at_least in ((small, 0.85), (tied, 1.0)):
        search = pcoqs_for(1000, Fraction(9, 10), 0.5, listed.size)
        law = search.law(np.bincount(np.searchsorted(listed.edges, scores), minlength=listed.size))
        covered = np.mean(scores[:, None] <= listed.values, axis=0)
        assert law[covered >= at_least].sum() > 1 - 1e-6


@pytest.mark.parametrize("name", BOTH)
def test_a_release_states_everywhere_that_there_is_no_epsilon(name):
    released = run(name)
    assert (released.guarantee.kind, released.coverage) == ("none", 0.0)
    assert "NO COVERAGE" in str(released)
    assert "0.5-zCDP for replacing one record; NO PURE EPSILON" in str(released)
    assert "no epsilon" in repr(released)
    assert "NOT PRIVATE" not in str(released)
    privacy = json.loads(released.to_json())["privacy"]
    assert (privacy["epsilon"], privacy["replace_one"], privacy["add_remove"]) == ("+inf", "+inf", None)
    assert privacy["zcdp"] == pytest.approx(0.5)
    assert released.privacy.concentrated_only
    for options in ({"rho": None, "epsilon": 1.0}, {"epsilon": 1.0}, {"rho": None}):
        with refused(confide.InputError, "rho"):
            run(name, **options)
    page = protection(released.privacy)
    assert page["concentrated"]
    assert (page["short"][0], page["factor"], page["beliefs"]) == ("ρ = 0.5, no ε", None, ())
    assert ("one record replaced", "unlimited: zCDP alone, no epsilon") in page["units"]
    assert facts_of(released)["rho"] == "0.5"


@pytest.mark.slow
def test_its_page_states_that_there_is_no_epsilon():
    page = confide.report(run("pcoqs")).html
    assert "There is no ε" in page
    assert "The threshold is a function of the records without noise" not in page


def test_several_records_of_a_person_cost_their_square():
    search = run("pcoqs", records_per_person=3)
    assert search.privacy.rho == pytest.approx(0.5)
    assert search.mechanism.zcdp == pytest.approx(0.5 / 9)


def test_levels_share_rho():
    levels = confide.calibrate_levels(
        SCORES, [0.1, 0.2], rho=0.5, mechanism="pcoqs", neighbors="replace_one", score="lac"
    )
    assert levels.privacy.rho == pytest.approx(0.5)
    assert levels.privacy.concentrated_only


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["mechanism"].update(halvings=1),
        lambda c: c["mechanism"].update(rank=900),
        lambda c: c["mechanism"].update(scale=9.0),
        lambda c: (c["mechanism"].update(halvings=5, scale=math.sqrt(5)), c["privacy"].update(zcdp=0.5)),
        lambda c: (
            c["candidates"].update(size=99999, recipe={"kind": "of", "size": 99999})
            if c["mechanism"]["name"] == "pcoqs-published"
            else c["mechanism"].update(name="pcoqs-published")
        ),
    ],
)
def test_a_search_with_more_counts_than_stated_raises_an_error(name, change):
    with pytest.raises(confide.FormatError):
        confide.Calibration.from_json(resealed(run(name), change))


def test_the_ledger_keeps_rho_and_no_limit_in_epsilon_holds_it(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    run("pcoqs", ledger=ledger, dataset="patients")
    account = Ledger(tmp_path / "budget.db").account("patients")
    (cost,) = account.costs
    assert cost.concentrated_only
    assert cost.rho == pytest.approx(0.5)
    assert "+inf (zCDP alone)" in str(account)
    assert "NO PURE EPSILON" in str(account)
    assert "not private" not in str(account).lower()
    assert "zCDP alone" in confide.report(ledger).html
    assert account.spent(1e-6).epsilon == compose([cost], 1e-6).epsilon < 6
    limited = Ledger(tmp_path / "limited.db", limit=5.0)
    with refused(confide.BudgetError, "dataset"):
        run("pcoqs", ledger=limited, dataset="patients")


def test_zcdp_alone_composes_at_a_delta_only():
    alone, other = Cost(math.inf, "replace_one", "pcoqs", 0.5), Cost(0.1, "replace_one", "slopes")
    assert compose([alone, other]).epsilon == math.inf
    assert str(compose([alone, other])).startswith("NO PURE EPSILON: 1 of 2 releases has zCDP alone")
    together = compose([alone, other], 1e-6)
    assert [bound.rule for bound in together.bounds] == ["zCDP"]
    assert compose([alone], 1e-6).epsilon < together.epsilon < 6
    bare = Cost(math.inf, "replace_one", "none")
    assert str(compose([alone, bare], 1e-6)).startswith("NOT PRIVATE: 1 of 2")
