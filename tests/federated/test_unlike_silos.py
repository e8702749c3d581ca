"""Silos that differ: in the unit of their scores, in all of their scores, in their numbers of records."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats

import confide
from confide import Candidates, CoverageWarning, ScoreHistogram, federated
from confide.cli.app import main
from confide.errors import InputError
from tests.exact import mechanism_law
from tests.federated.helpers import Federation
from tests.planted_values import assert_error_is_private


@pytest.fixture
def three(tmp_path):
    return Federation.uniform(tmp_path, *[300] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1000.0, 1.0, 30.0, 0.001])
def test_a_silo_of_another_unit_is_pointed_out(tmp_path, capsys, factor):
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
    for name, message in zip(["plan", "0", "1", "2", "3", "4"], [text, *answers], strict=True):
        (tmp_path / f"{name}.json").write_text(message)
    files = [str(tmp_path / f"{i}.json") for i in range(5)]
    out = str(tmp_path / "released.json")
    assert main(["federated", "aggregate", *files, "--plan", str(tmp_path / "plan.json"), "--out", out]) == 0
    assert ("warning: replies of 'Dongsi' (" in capsys.readouterr().err) is far
    page = confide.report(released, answers=answers).html
    assert ("Replies of &#39;Dongsi&#39; (" in page) is far


@pytest.mark.slow
def test_probabilities_of_iid_silos_may_be_any_small_numbers(three):
    """Scores from 0 to 1 have no unit, and those of a confident model span decades."""
    read = federated.read_plan(three.plan(score="lac"))
    assert federated.distant_replies(read, {"silo 0": 1e-6, "silo 1": 0.5, "silo 2": 0.6}) is None


@pytest.mark.parametrize("m", [2, 4, 9])
def test_a_test_of_iid_silos_has_no_useful_level(m):
    """Theorem F13: the mean over p of P(Bin(m, p) = k) is 1/(m + 1), so some p has at least this probability."""
    x, weights = np.polynomial.legendre.leggauss(m + 1)
    for k in range(m + 1):
        assert weights @ stats.binom.pmf(k, m, (x + 1) / 2) / 2 == pytest.approx(1 / (m + 1), rel=1e-12)


@pytest.mark.slow
def test_two_replies_and_infinite_ones_are_looked_at(three):
    read = federated.read_plan(three.plan(candidates=confide.Candidates.of([1.0, 1e4, 1e9])))
    assert federated.distant_replies(read, {"silo 0": 1.0, "silo 1": 1e4}).startswith("replies of 'silo 1' (10000)")
    assert federated.distant_replies(read, {"silo 0": 1.0, "silo 1": float("inf")}) is None
    assert federated.distant_replies(read, {"silo 0": -1.0, "silo 1": 1e4, "silo 2": 1e9}) is None
    read = federated.read_plan(three.plan(candidates=confide.Candidates.of([0.001, 1.0, 1.5])))
    assert federated.distant_replies(read, {"silo 0": 0.001, "silo 1": 1.0, "silo 2": 1.5}) is not None


@pytest.mark.slow
def test_errors_for_secret_sizes_name_methods_for_different_silos(three, tmp_path, capsys):
    for keys in three.keys:
        (tmp_path / f"{keys.name}.silo").write_text(keys.public().to_json())
    three.coordinator.save(tmp_path / "coordinator.key")
    silos = [part for keys in three.keys for part in ("--silo", str(tmp_path / f"{keys.name}.silo"))]
    asked = ["--alpha", "0.1", "--epsilon", "4", "--set", "candidates=20", "--set", "n_min=100", "--compare"]
    assert main(["federated", "plan", *silos, "--keys", str(tmp_path / "coordinator.key"), *asked]) == 0
    said = capsys.readouterr().out
    assert "private-qq: " in said
    assert "its reply, to the coordinator and every reader" in said
    assert "you can use secure-sum, whose guarantee holds for non-IID silos" in said


# One silo with distant scores moves the threshold of private-qq to the next honest reply at most, for k < m

SILOS, SIZE, LAST = 5, 210, 2
CANDIDATES = Candidates.of([1, 2, 3, 1e6])
"""Honest scores are 1, 2 or 3, the last at position `LAST`; an empty candidate range follows."""
HONEST = np.repeat([1.0, 2.0, 3.0], SIZE // 3)
FAR = {"beyond a desert": 1e6, "larger than every candidate": 1e300, "infinite": math.inf}


@pytest.fixture
def federation(tmp_path, request):
    return Federation(tmp_path, [np.full(SIZE, request.param), *[HONEST] * (SILOS - 1)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:replies of .silo 0.:confide.CoverageWarning")  # for distant replies
@pytest.mark.parametrize("federation", FAR.values(), ids=FAR, indirect=True)
def test_a_far_silo_does_not_carry_the_answer_away(federation):
    """The chance that m - k honest replies lie beyond all honest scores is below 1e-9, by their exact law."""
    signed = federation.plan(0.2, 2.0, candidates=CANDIDATES)
    plan = federated.read_plan(signed)
    counts = tuple(np.bincount(np.searchsorted(CANDIDATES.edges, HONEST), minlength=CANDIDATES.size))
    away = mechanism_law(plan.protocol.mechanism(plan.first, 1), counts)[LAST + 1 :].sum()
    k, _ = plan.certify()
    assert k < SILOS
    assert stats.binom.sf(SILOS - k - 1, SILOS - 1, away) < 1e-9
    released = federated.aggregate(signed, federation.answers(signed))
    assert released[None].k == k
    assert released.threshold <= HONEST.max()


# Silos without records, and counts that are too large for a message: no wrong threshold


def test_a_group_that_no_silo_has_is_named(tmp_path):
    """Both groups are answered alike; the one without records has +inf, and its name is in the warning."""
    federation = Federation.uniform(tmp_path, 800, 800, 800, secret=True)
    options = {"candidates": Candidates.unit(51), "method": "private-qq"}
    plan = federated.plan(federation.silos, 0.1, 4.0, by="group", names=["all", "none"], **options).sign(
        federation.coordinator
    )
    answers = [federation.answer(i, plan, groups=["all"] * 800) for i in range(3)]
    with pytest.warns(CoverageWarning, match="the threshold of group none is \\+inf"):
        released = federated.aggregate(plan, answers)
    assert released.parts["all"].threshold < np.inf


@pytest.mark.slow
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


@pytest.mark.slow(unless="secure-sum")
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
