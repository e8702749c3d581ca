"""Plans for many silos and for unlike ones, and comparison of the methods before any charge."""

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import confide
from confide import CoverageWarning, ScoreHistogram, federated
from confide.candidates import Candidates
from confide.core import Pilot
from confide.errors import InputError
from confide.federated.certificates import certified_k, every_certified_k, order_statistic_coverage, probabilities
from confide.federated.keys import Silo
from confide.federated.many_silos import matched, tails
from confide.federated.private_quantiles import best_private_qq
from confide.federated.protocols.secure_sum import noise_law
from confide.federated.reply_laws import RandomRankReply, ReplyTable, random_rank
from confide.mechanisms.slopes import slopes_for
from tests.builders import slow
from tests.exact import mechanism_law
from tests.federated.helpers import Federation, Files
from tests.refused import assert_error_is_private, refused

LEVEL = Fraction(9, 10)
UNEQUAL = np.exp(np.random.default_rng(0).uniform(np.log(20), np.log(2000), 1000)).astype(int).tolist()


def roster(sizes):
    """Return public silos without generating keys, which takes time."""
    keys = ([sha256(f"{use} {i}".encode()).hexdigest() for use in "ab"] for i in range(len(sizes)))
    return [Silo(f"s{i}", *pair, n) for i, (n, pair) in enumerate(zip(sizes, keys, strict=True))]


def replies(sizes, epsilon, rate, candidates=50):
    trial = slopes_for(Fraction(0), Fraction(1), 14, 6, "replace_one", epsilon)
    aimed = (type(trial)(**{**vars(trial), "offset": Fraction(min(n, int(rate * (n + 1)) + 1))}) for n in sizes)
    return [random_rank(n, one, candidates) for n, one in zip(sizes, aimed, strict=True)]


@pytest.mark.parametrize("epsilon", [0.15, 1.0, 8.0])
def test_laws_together_are_the_laws_one_by_one(epsilon):
    """Include ranks that reach 0, vanishing probabilities, and distributions of fractional ranks."""
    laws = [*replies([5, 20, 20, 90, 1000, 100000], epsilon, 0.95), RandomRankReply(9, (2.5, 7.0), (0.5, 0.25), 0.1)]
    t = np.concatenate([[0.0, 1e-9, 1e-4], np.linspace(0.01, 0.99, 60), [1 - 1e-9, 1.0]])
    together = ReplyTable(laws).below(t)
    np.testing.assert_allclose(together, [law.below(t) for law in laws], atol=2e-10)
    assert (np.diff(together, axis=1) >= -1e-12).all()
    np.testing.assert_array_equal(probabilities(laws, t, 3), np.sort(together, axis=0)[-3:])


@pytest.mark.parametrize("delta", [0.05, *slow([None])])
def test_one_sweep_says_what_is_certified_for_every_number_of_silos(delta):
    laws = replies(UNEQUAL[:120], 1.0, 0.93)
    found = every_certified_k(laws, LEVEL, delta)
    assert len(found) == 120
    for honest in (1, 4, 9, 23, 60, 119, 120):
        exact = certified_k(laws, LEVEL, delta, honest)
        assert found[honest - 1] == (None if exact is None else exact[0])
    assert None in found
    assert found[-1] is not None


def test_what_the_sweep_leaves_in_doubt_is_computed_exactly(monkeypatch):
    """Test silos of one rank whose certificate equals the level, which the nodes alone do not decide."""
    laws = [RandomRankReply.fixed(n, n) for n in (9, 19, 39)]
    asked = []
    monkeypatch.setattr(
        "confide.federated.certificates.certified_k", lambda *given: asked.append(given[3]) or certified_k(*given)
    )
    found = every_certified_k(laws, LEVEL, None)
    assert asked == [1]
    assert [None if k is None else k for k in found] == [
        None if (exact := certified_k(laws, LEVEL, None, honest)) is None else exact[0] for honest in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    "sizes", [[100] * 1000, pytest.param(UNEQUAL, marks=pytest.mark.slow)], ids=["equal", "unequal"]
)
def test_a_plan_for_a_thousand_silos_is_certified_by_the_laws_of_all(sizes):
    made = federated.plan(roster(sizes), 0.1, 1.0, method="private-qq", score="lac")
    promises = made.promises()
    k, guarantee = made.certify()
    assert (promises[1000].k, promises[1000].infinite, guarantee.coverage) == (k, "never", 0.9)
    assert list(promises) == list(range(1000, 0, -1))
    laws = [made.first.reply_law(i) for i in range(1000)]
    assert order_statistic_coverage(laws, k) >= 0.9  # by all distributions, not by representative ones
    assert order_statistic_coverage(laws, k - 1) < 0.9


@pytest.mark.long
def test_byzantine_and_absent_silos_are_planned_for_among_many():
    plain = best_private_qq(UNEQUAL[:100], LEVEL, 2.0, 50)
    found = best_private_qq(UNEQUAL[:100], LEVEL, 2.0, 50, honest=85, absent=10, most_k=85)
    laws = [random_rank(n, mechanism, 50) for n, mechanism in zip(UNEQUAL, found.mechanisms, strict=False)]
    assert order_statistic_coverage(laws, found.k, 85) >= 0.9
    assert found.k <= 85
    assert found.expected > plain.expected


def test_the_match_is_exact_for_equal_silos_and_the_law_is_used_for_few():
    chances, silos = np.array([[0.3, 0.8]]), np.array([70])
    np.testing.assert_allclose(matched(chances, silos, 30), tails(chances, silos)(30), atol=1e-12)
    unlike, few = np.array([[0.1, 0.3], [0.9, 0.8], [0.5, 0.5]]), np.array([2, 1, 3])
    one = probabilities([RandomRankReply(1, (1,), (1.0,))], np.array([0.5]))
    assert one[0, 0] == 0.5
    each = np.repeat(unlike, few, axis=0)
    for k in (1, 3, 6):
        outcomes = np.stack(np.meshgrid(*[[0, 1]] * 6, indexing="ij"), -1).reshape(-1, 6)
        ways = np.prod(np.where(outcomes[:, :, None] == 1, each, 1 - each), axis=1)
        np.testing.assert_allclose(tails(unlike, few)(k), ways[outcomes.sum(axis=1) >= k].sum(axis=0), atol=1e-12)
    worst = tails(unlike, few, 3)(2)  # the three largest at each node: 0.9 0.5 0.5 and 0.8 0.5 0.5
    np.testing.assert_allclose(worst, [0.9 * 0.75 + 0.1 * 0.25, 0.8 * 0.75 + 0.2 * 0.25], atol=1e-12)


SCHOOLS = np.random.default_rng(2).integers(20, 160, 40).tolist()


def test_impossible_guarantees_are_refused_with_the_reason():
    with refused(InputError, "silos"):
        federated.plan(roster([3, 3]), 0.1, 1.0)
    comparison = federated.compare(roster([3, 3]), 0.1, 1.0)
    assert comparison.recommended is None
    with refused(InputError, "method"):
        _ = comparison.plan


def test_a_comparison_is_one_table():
    comparison = federated.compare(roster([100] * 3), 0.1, 2.0, candidates=Candidates.unit(20))
    for one in comparison.alternatives:
        assert one.worst == max(one.expected, one.expected_gaussian)
    _, heads, private, summed, *notes = str(comparison).splitlines()
    assert all(head in heads for head in ("Method", "Uniform scores", "Gaussian scores", "A silo reveals"))
    assert private.split()[:2] == ["private-qq", f"{comparison.alternatives[0].expected:.4f}"]
    assert summed.split()[:3] == ["secure-sum", "(recommended)", f"{comparison.recommended.expected:.4f}"]
    assert ["pay again" in note for note in notes] == [False, False, True]


@pytest.mark.long
def test_the_default_method_is_the_recommended_one():
    """A sum serves both levels at one price, and private-qq divides the loss: one level alone would have it instead."""
    silos, few = roster([200] * 5), Candidates.unit(100)
    assert federated.compare(silos, [0.2, 0.1], 4.0, candidates=few).recommended.method == "secure-sum"
    assert federated.plan(silos, [0.2, 0.1], 4.0, candidates=few).method == "secure-sum"
    assert federated.plan(silos, 0.2, 4.0, candidates=few).method == "private-qq"


@pytest.mark.long
def test_a_pilot_says_how_large_sets_will_be():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(6), 3000)
    labels = np.array([rng.choice(6, p=row) for row in p[:500]])
    pilot = Pilot(confide.lac_score(p[:500], labels), confide.all_scores(p))
    comparison = federated.compare(roster(SCHOOLS), 0.1, 1.0, score="lac", pilot=pilot)
    found = comparison.alternatives
    assert "Classes in a set" in str(comparison)
    sizes = {each.method: each.on_pilot.size for each in found}
    assert sizes["secure-sum"] < sizes["private-qq"]
    for one in found:
        assert 1 < one.on_pilot.plain_size < one.on_pilot.size < 6
    alone = federated.compare(roster([300] * 3), 0.1, 2.0, score="lac", pilot=pilot.scores)
    assert all(one.on_pilot.size is None and one.on_pilot.records == 500 for one in alone.alternatives)


@pytest.mark.long
def test_the_command_takes_what_is_recommended(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    schools = {f"school {i}": 30 + 9 * i for i in range(12)}
    files = Files(run, schools, asked=("--alpha", 0.1, "--epsilon", 1, "--score", "lac"))
    files.plan()
    files.plan("--compare", out="compared.json")
    planned, compared = (federated.read_plan(Path(f"{name}.json").read_text()) for name in ("plan", "compared"))
    assert planned.method == "secure-sum"
    assert compared.first == planned.first


@pytest.mark.long
def test_two_certificates_for_byzantine_silos():
    """The guarantee of private-qq for 20 silos of 200 records with 3 Byzantine silos, where Rob-FCP has none."""
    made = federated.plan(roster([200] * 20), 0.1, 1.0, candidates=Candidates.unit(100), liars=3)
    assert made.method == "private-qq"
    assert made.certify()[1].coverage == 0.9
    assert {made.promises()[answers].infinite for answers in (17, 20)} == {"never"}


def test_the_noise_of_a_sum_is_expected_as_it_is():
    """With all records in one bin, the last candidate is chosen if its noise exceeds n - T (exact distribution)."""
    made = federated.plan(roster([100] * 3), 0.1, 1.0, method="secure-sum", candidates=Candidates.unit(3))
    made = replace(made.first, target=297)
    law = made.answer_law(np.array([0.0, 1.0, 1.0]))
    noise = noise_law(made.scale, 3 / made.honest)
    exact = noise[len(noise) // 2 + 4 :].sum()
    assert 0.05 < exact < 0.3
    assert law[0] == 0
    assert abs(law[2] - exact) < 5 * np.sqrt(exact * (1 - exact) / 1000)


@pytest.fixture
def three(tmp_path):
    return Federation.uniform(tmp_path, *[300] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1000.0, 1.0, 30.0, 0.001])
def test_a_silo_of_another_unit_is_pointed_out(tmp_path, factor):
    """Residuals in micrograms, and one silo's in nanograms: the public replies show the difference."""
    rng = np.random.default_rng(0)
    scores = [rng.exponential(30, 400) for _ in range(4)]
    four = Federation(tmp_path, [*scores, factor * rng.exponential(30, 400)], names=["a", "b", "c", "d", "Dongsi"])
    wide = confide.Candidates.of(np.geomspace(1e-3, 1e6, 181))
    text = four.plan(epsilon=8.0, candidates=wide)
    answers = four.answers(text)
    far = factor in (1000.0, 0.001)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        released = federated.aggregate(text, answers)
    said = [str(one.message) for one in caught if issubclass(one.category, CoverageWarning)]
    assert len(said) == far
    if far:
        assert said[0].startswith("replies of 'Dongsi' (")
        assert "Compare their units, their model and their numbers of records" in said[0]
    page = confide.report(released, answers=answers).html
    assert ("Replies of &#39;Dongsi&#39; (" in page) is far


@pytest.mark.parametrize("m", [2, 4, 9])
def test_a_test_of_iid_silos_has_no_useful_level(m):
    """Theorem F13: the mean over p of P(Bin(m, p) = k) is 1/(m + 1), so some p has at least this probability."""
    x, weights = np.polynomial.legendre.leggauss(m + 1)
    for k in range(m + 1):
        assert weights @ stats.binom.pmf(k, m, (x + 1) / 2) / 2 == pytest.approx(1 / (m + 1), rel=1e-12)


@pytest.mark.slow
def test_two_replies_and_infinite_ones_are_looked_at(three):
    """Scores from 0 to 1 have no unit, and those of a confident model span decades."""
    read = federated.read_plan(three.plan(score="lac"))
    assert federated.distant_replies(read, {"silo 0": 1e-6, "silo 1": 0.5, "silo 2": 0.6}) is None
    read = federated.read_plan(three.plan(candidates=confide.Candidates.of([1.0, 1e4, 1e9])))
    assert federated.distant_replies(read, {"silo 0": 1.0, "silo 1": 1e4}).startswith("replies of 'silo 1' (10000)")
    assert federated.distant_replies(read, {"silo 0": 1.0, "silo 1": float("inf")}) is None
    assert federated.distant_replies(read, {"silo 0": -1.0, "silo 1": 1e4, "silo 2": 1e9}) is None
    read = federated.read_plan(three.plan(candidates=confide.Candidates.of([0.001, 1.0, 1.5])))
    assert federated.distant_replies(read, {"silo 0": 0.001, "silo 1": 1.0, "silo 2": 1.5}) is not None


# One silo with distant scores moves the threshold of private-qq to the next honest reply at most, for k < m

SILOS, SIZE, LAST = 5, 210, 2
CANDIDATES = Candidates.of([1, 2, 3, 1e6])
"""Honest scores are 1, 2 or 3, the last at position `LAST`; an empty candidate range follows."""
HONEST = np.repeat([1.0, 2.0, 3.0], SIZE // 3)
FAR = {"beyond a desert": 1e6, "larger than every candidate": 1e300, "infinite": math.inf}


@pytest.fixture
def federation(tmp_path, request):
    return Federation(tmp_path, [np.full(SIZE, request.param), *[HONEST] * (SILOS - 1)])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:replies of .silo 0.:confide.CoverageWarning")  # for distant replies
@pytest.mark.parametrize("federation", FAR.values(), ids=FAR, indirect=True)
def test_a_far_silo_does_not_carry_the_answer_away(federation):
    """The chance that m - k honest replies lie beyond all honest scores is below 1e-9, by their exact law."""
    signed = federation.plan(0.2, 2.0, candidates=CANDIDATES)
    plan = federated.read_plan(signed)
    counts = tuple(np.bincount(np.searchsorted(CANDIDATES.edges, HONEST), minlength=CANDIDATES.size))
    away = mechanism_law(plan.first.mechanism(1), counts)[LAST + 1 :].sum()
    k, _ = plan.certify()
    assert k < SILOS
    assert stats.binom.sf(SILOS - k - 1, SILOS - 1, away) < 1e-9
    released = federated.aggregate(signed, federation.answers(signed))
    assert released[None].k == k
    assert released.threshold <= HONEST.max()


# Silos without records, and counts that are too large for a message: no wrong threshold


@pytest.mark.long
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
@pytest.mark.parametrize("silos", [3, 60])
def test_counts_beyond_the_stated_size_are_rejected_and_never_wrapped(tmp_path, method, silos):
    """Counts of 3 billion a bin exceed 2^31 and a public size; their sum over all bins exceeds 2^32."""
    federation = Federation.uniform(tmp_path, *[50] * silos)
    plan = federation.plan(method=method, candidates=Candidates.unit(21))
    large = ScoreHistogram(Candidates.unit(21), np.full(21, 3_000_000_000))
    with pytest.raises(InputError) as caught:
        federated.answer(plan, large, federation.keys[0], federation.policy, federation.ledgers[0])
    assert_error_is_private(caught.value)
    assert federation.answer(0, plan)  # nothing was charged, and the plan can still be answered


@pytest.mark.long(unless="secure-sum")
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_counts_of_billions_are_summed_exactly(tmp_path, method):
    """Three silos of 3 billion records each, all in one bin but for 9 in 100: the threshold is the end of that bin."""
    candidates, size = Candidates.unit(21), 3_000_000_000
    federation = Federation(tmp_path, [[0.5]] * 3)
    federation.silos = [keys.public(size) for keys in federation.keys]
    plan = federation.plan(method=method, candidates=candidates)
    counts = np.zeros(21, np.int64)
    counts[10], counts[15] = size // 100 * 91, size // 100 * 9
    counted = ScoreHistogram(candidates, counts)
    federation.scores = [counted] * 3
    assert federated.aggregate(plan, federation.answers(plan)).threshold == candidates.edges[10]
