"""Calibration with randomised labels: exact laws, guarantees, texts and errors."""

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import confide
from confide.calibration import NoisyLabelCounts
from confide.errors import CoverageWarning, FormatError, InputError, InputTypeError
from confide.guarantee import law_failure, mean_coverage
from confide.ledger import Ledger
from confide.mechanisms import LabelPrivacy, NoisyLabels, noisy_labels_for
from confide.releases import LabelStatement, facts_of
from tests.exact_tests import assert_covers
from tests.files import signed
from tests.refused import refused


def sample(n, k=3, seed=0, parameters=None):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.linspace(3, 1, k) if parameters is None else parameters, n)
    return p, (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)


@pytest.fixture(scope="module")
def made():
    p, y = sample(4000)
    noisy = confide.randomise_labels(np.array(["cat", "dog", "owl"])[y], ["cat", "dog", "owl"], epsilon=2.0)
    return confide.calibrate_noisy_labels(p, noisy, alpha=0.1, about={"model": "m"}), p, y, noisy


def test_the_first_candidate_from_which_all_reach_the_rank_is_chosen():
    """For two classes with little noise, so that corrected counts are about the counts of the noisy labels."""
    mechanism = NoisyLabels(20.0, 2, 2)
    for noisy, chosen in (([2, 1, 0], 0), ([1, 2, 0], 1), ([0, 1, 0], 2)):
        assert mechanism.choose(np.array([noisy, noisy])) == chosen


def law_of(mechanism, y):
    """All outcomes of noisy labels with their exact probabilities, given the true ones."""
    p, q = Fraction(mechanism.truth), mechanism.other
    for noisy in itertools.product(range(mechanism.classes), repeat=len(y)):
        yield noisy, math.prod(p if a == b else q for a, b in zip(noisy, y, strict=True))


@pytest.mark.parametrize("score", ["lac", "aps_deterministic", "raps_deterministic(penalty=0.1,k_reg=1)"])
def test_corrected_counts_have_the_true_ones_as_their_mean(score):
    """Exactly, over all noise: E (noisy - q all)/(p - q) is the number of true labels that are covered."""
    p, y = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5]]), (0, 2, 1)
    candidates, mechanism = confide.Candidates.of([0.25, 0.5, 0.75, 1.0]), NoisyLabels(1.0, 3, 3)
    mean = [Fraction(0)] * candidates.size
    for noisy, chance in law_of(mechanism, y):
        counts = NoisyLabelCounts(candidates, score)
        counts.add(p, np.array(noisy))
        mean = [m + chance * c for m, c in zip(mean, mechanism.corrected(counts.counts), strict=True)]
    truth = confide.class_score(p, y, score)
    assert mean == [int((truth <= t).sum()) for t in candidates.values]


ATOMS = ([[0.75, 0.25], [0.5, 0.5], [0.125, 0.875]], [[0.25, 0.75], [0.625, 0.375], [0.5, 0.5]])


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
@pytest.mark.parametrize("rows", ATOMS)
def test_coverage_over_all_data_and_all_noise(rows, epsilon):
    """Every data set of four records from a law with six atoms, and all noise, exactly: both bounds, for every rank."""
    n, rows = 4, np.array(rows)
    candidates = confide.Candidates.of([0.125, 0.25, 0.5, 0.75])
    weight = {(x, y): Fraction(1 + x + 2 * y, 18) for x in range(3) for y in range(2)}
    assert sum(weight.values()) == 1
    coverage = [sum(w for (x, y), w in weight.items() if 1 - rows[x, y] <= t) for t in candidates.values]
    p, q = Fraction(NoisyLabels(epsilon, 2, 1).truth), NoisyLabels(epsilon, 2, 1).other
    seen = {}  # the information of the analyst about one record, with its probability
    for (x, y), w in weight.items():
        for noisy in range(2):
            seen[x, noisy] = seen.get((x, noisy), 0) + w * (p if noisy == y else q)
    data = {}  # counts with their probability, of unordered records
    for records in itertools.combinations_with_replacement(seen, n):
        ways = math.factorial(n)
        for one in set(records):
            ways //= math.factorial(records.count(one))
        counts = NoisyLabelCounts(candidates, "lac")
        counts.add(rows[[x for x, _ in records]], np.array([noisy for _, noisy in records]))
        data[records] = counts.counts, ways * math.prod(seen[one] for one in records)
    assert sum(chance for _, chance in data.values()) == 1
    for rank in range(1, 2 * n + 3):
        mechanism = NoisyLabels(epsilon, 2, rank)
        reached = [(coverage[mechanism.choose(counts)], chance) for counts, chance in data.values()]
        law = mechanism.rank_law(n, candidates.size)
        assert sum(c * chance for c, chance in reached) >= Fraction(mean_coverage(law, n)) - Fraction(1, 10**12)
        for level in (0.5, 0.7, 0.9):
            fails = sum(chance for c, chance in reached if c < level)
            assert fails <= Fraction(law_failure(law, n, level)) + Fraction(1, 10**12)


@pytest.mark.slow
def test_the_guarantee_holds_on_fresh_records(made):
    released, _, _, _ = made
    p, y = sample(20000, seed=1)
    covered = confide.predict_set(p, released).mask[np.arange(len(y)), y]
    assert_covers(released, 4000, covered)
    assert covered.mean() < 0.99  # 0.91 is expected, with a standard deviation of at most 0.013: six away
    sure = confide.calibrate_noisy_labels(*sample(4000), alpha=0.1, label_epsilon=30.0, delta=0.05)
    assert sure.guarantee.delta == 0.05
    assert "with probability 0.95" in str(sure)


@pytest.mark.slow
def test_uncorrected_labels_cover_too_much_or_too_little():
    """A noisy label is covered with (p - q) F + q size: more than F requires if sets beat chance, and else less."""
    k, n = 3, 2500
    p, y = sample(n + 8000, parameters=[0.3] * k)
    noisy = np.asarray(confide.randomise_labels(y[:n], k, epsilon=2.0))
    plain = confide.calibrate(confide.lac_score(p[:n], noisy), 0.1, mechanism="none")
    better = confide.calibrate_noisy_labels(p[:n], noisy, 0.1, 2.0)
    sets = [confide.predict_set(p[n:], one) for one in (plain, better)]
    covered = [one.mask[np.arange(len(y) - n), y[n:]].mean() for one in sets]
    assert covered[0] > covered[1]  # .992 and .908, seven standard deviations of their difference apart
    assert sets[0].sizes.mean() > sets[1].sizes.mean() + 0.3  # 2.11 and 1.40, nine away
    # A model that calls the true class the least likely: sets of nine of ten classes cover no true label, but 9/10 of
    # the noise, so that noisy labels cover (p - q) 0 + 9 q = 0.768, and non-private calibration accepts it at 0.3.
    k, y = 10, np.arange(n) % 10
    assert 9 * NoisyLabels(1.0, k, 1).other > Fraction(76, 100)
    noisy = np.asarray(confide.randomise_labels(y, k, epsilon=1.0))
    wrong = np.full((n, k), 1 / 9.0)
    wrong[np.arange(n), y] = 0.0
    plain = confide.calibrate(confide.lac_score(wrong, noisy), 0.3, mechanism="none")
    assert plain.threshold < 1.0  # eight standard deviations
    assert not confide.predict_set(wrong, plain).mask[np.arange(n), y].any()
    with pytest.warns(CoverageWarning):
        corrected = confide.calibrate_noisy_labels(wrong, noisy, 0.3, 1.0, candidates=confide.Candidates.of([0.95]))
    assert corrected.threshold == math.inf


@pytest.mark.parametrize(("n", "k", "epsilon"), [(1, 2, 1.0), (50, 2, 0.01), (300, 100, 0.5)])
def test_too_few_records_give_all_labels(n, k, epsilon):
    p, y = sample(n, k)
    with pytest.warns(CoverageWarning):
        released = confide.calibrate_noisy_labels(p, y, 0.1, epsilon)
    assert released.threshold == math.inf
    assert confide.Calibration.from_json(released.to_json()) == released


@pytest.mark.slow
def test_order_and_batches_do_not_matter(made):
    released, p, _, noisy = made
    order = np.random.default_rng(5).permutation(len(p))
    again = confide.calibrate_noisy_labels(p[order], np.asarray(noisy)[order], 0.1, noisy.statement)
    assert again.threshold == released.threshold
    counts = NoisyLabelCounts(confide.Candidates.unit(50), "lac")
    places = np.searchsorted(["cat", "dog", "owl"], noisy.labels)
    counts.add(p, places)
    parts = NoisyLabelCounts(confide.Candidates.unit(50), "lac")
    for part in (slice(0, 7), slice(7, 4000)):
        parts.add(p[part], places[part])
    assert (parts.counts == counts.counts).all()


def test_randomised_scores_have_one_number_per_record():
    p, y = sample(300)
    u = np.random.default_rng(1).random(300)
    counts = NoisyLabelCounts(confide.Candidates.unit(40), "aps")
    counts.add(p, y, u)
    own = confide.class_score(p, y, "aps", u=u)
    of_all = confide.all_scores(p, "aps", u=u)
    for j, t in enumerate(confide.Candidates.unit(40).values):
        assert counts.counts[0, : j + 1].sum() == (own <= t).sum()
        assert counts.counts[1, : j + 1].sum() == (of_all <= t).sum()
    assert confide.calibrate_noisy_labels(p, y, 0.3, 5.0, score="aps").score == "aps"


@pytest.mark.slow
def test_texts_state_what_is_protected(made):
    released, _, _, _ = made
    for text in (str(released), facts_of(released)["privacy"], released._repr_html_()):
        assert "each label" in text
        assert "not protected" in text
    assert isinstance(released, confide.Calibration)
    assert released.epsilon == 2.0
    assert released.privacy.loss("replace_one") == released.privacy.loss("add_remove") == math.inf
    assert "practically no protection" in str(LabelPrivacy.of(12.0))
    page = confide.report(released).html
    assert "its features and its participation are not protected" in page
    assert "Further calibrations on the noisy labels have no cost" in page
    assert "Everyone who sees the randomised labels, also the person who calibrates on them, with any" in page
    assert "docs/theory-labels.md, Theorem L4; privacy by Theorem L1" in page
    with refused(InputTypeError, "previous"):
        confide.recalibrate(released, scores=[0.5] * 100)


def test_a_file_is_read_again(made):
    released, _, _, _ = made
    assert confide.Calibration.from_json(released.to_json()) == released
    assert confide.NoisyLabelCalibration.from_json(released.to_json()).classes == ("cat", "dog", "owl")


@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        ("mechanism", "rank", 3500),
        ("mechanism", "rank", 3900),
        ("mechanism", "label_epsilon", 3.0),
        ("mechanism", "classes", 2),
        ("mechanism", "classes", 1),
        ("mechanism", "name", "slopes"),
        ("privacy", "epsilon", 0.5),
        ("privacy", "protected", "records"),
        ("guarantee", "coverage", 0.95),
        ("guarantee", "n", 400000),
        ("guarantee", "n", None),
        ("guarantee", "kind", "training_conditional"),
        (None, "alpha", "1/20"),
        (None, "threshold", 0.123),
        (None, "score", "absolute_residual"),
        (None, "classes", ["cat", "dog"]),
        (None, "versions", {"confide": 1}),
    ],
)
def test_a_claim_that_does_not_follow_raises(made, where, key, value):
    content = json.loads(made[0].to_json())
    (content if where is None else content[where])[key] = value
    with pytest.raises(FormatError):
        confide.Calibration.from_json(signed(content))


def test_a_rank_is_accepted_up_to_rounding():
    """One rank more than required may be another machine's rounding; two belong to another level."""
    level = Fraction(9, 10)
    for delta in (None, 0.1):
        least = noisy_labels_for(level, 200, 2.0, 3, delta)
        for more, believed in ((-1, False), (0, True), (1, True), (2, False)):
            found = dataclasses.replace(least, rank=least.rank + more).guarantee(level, 200, delta)
            assert (found is not None) == believed


def test_a_ledger_is_charged_for_labels_and_not_for_thresholds(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    p, y = sample(300)
    first = confide.randomise_labels(y, 3, epsilon=2.0, ledger=ledger, dataset="annotators")
    with pytest.warns(confide.EarlierReleaseWarning):
        same = confide.randomise_labels(y, 3, epsilon=2.0, ledger=ledger, dataset="annotators")
    assert (same.labels == first.labels).all()
    confide.calibrate_noisy_labels(p, first, 0.3)
    confide.calibrate_noisy_labels(p, first, 0.2, score="aps_deterministic")
    account = ledger.account("annotators")
    assert [(entry.kind, entry.cost.epsilon, entry.cost.neighbors) for entry in account.entries] == [
        ("labelling", 2.0, "replace_one")
    ]
    confide.randomise_labels(y, 3, epsilon=1.0, ledger=ledger, dataset="annotators")
    assert ledger.account("annotators").spent().epsilon == 3.0
    with refused(confide.OtherDataError, "dataset"):
        confide.randomise_labels(1 - np.minimum(y, 1), 3, epsilon=2.0, ledger=ledger, dataset="annotators")


def test_a_statement_is_read_again(made, tmp_path):
    statement = made[3].statement
    statement.save(tmp_path / "s.json")
    assert LabelStatement.load(tmp_path / "s.json") == statement
    with refused(FormatError, "labels"):
        LabelStatement.from_json(statement.to_json().replace("2.0", "1.0"))
    with refused(FormatError, "file"):
        LabelStatement.from_json(made[0].to_json())
    with refused(InputError, "classes"):
        confide.calibrate_noisy_labels(made[1], made[3], 0.1, classes=["dog", "cat", "owl"])


@pytest.mark.parametrize(("classes", "kind"), [([3, 1], "i"), (["cat", "dog"], "U"), ([3, "cat"], "O")])
def test_randomised_labels_have_the_type_of_the_names(classes, kind):
    labels = np.array(classes * 20, dtype=object)
    found = np.asarray(confide.randomise_labels(labels, classes, epsilon=1.0).labels)
    assert found.dtype.kind == kind
    assert set(found.tolist()) <= set(classes)


def test_errors_contain_no_label():
    private = "hepatitis"
    for labels, classes, epsilon in (
        (["no", private], ["no", "yes"], 1.0),
        (["no"], ["no"], 1.0),
        ([], ["no", "yes"], 1.0),
        (["no"], ["no", "yes"], 31.0),
        (["no"], ["no", "yes"], 0.0),
        ([[0]], 2, 1.0),
        (["no"], "no", 1.0),
    ):
        with pytest.raises((InputError, InputTypeError)) as caught:
            confide.randomise_labels(labels, classes, epsilon)
        assert private not in str(caught.value)
    p, y = sample(10)
    for options in ({}, {"label_epsilon": -1.0}, {"label_epsilon": 1.0, "score": "cqr"}):
        with pytest.raises((InputError, InputTypeError)):
            confide.calibrate_noisy_labels(p, y, 0.1, **options)
