"""One threshold for a population with a known shift, and class thresholds under any shift of classes."""

import json
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

import confide
from confide.core import ClassShift, RecordWeights, rounding_text, weighted_sum
from confide.errors import FormatError, InputError, InputTypeError
from confide.mechanisms import certify, privacy_statement
from tests.calibrations import weighted_counts
from tests.designs import planned, terms
from tests.exact import mechanism_law
from tests.files import signed
from tests.refused import refused

SHIFT = ClassShift.of_shares({"a": 0.5, "b": 0.5}, {"a": 0.2, "b": 0.8})
CANDIDATES = confide.Candidates.unit(60)


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(1)
    labels = rng.choice(["a", "b"], 1500)
    return np.minimum(rng.random(1500) * np.where(labels == "b", 1.0, 0.6), 1.0), labels


def below(mechanism, counts):
    """P(the chosen candidate lies left of each), from the exact law; shape (m,)."""
    return np.append(0.0, np.cumsum(mechanism_law(mechanism, counts))[:-1])


@pytest.mark.slow
def test_class_thresholds_hold_under_every_shift_of_classes():
    """All pairs of up to five scores per class, one of them new, over all class shares; one threshold for all fails."""
    own = planned(terms("1/2", 3, 6.0), 5).mechanism
    sets = [bins for size in range(1, 6) for bins in combinations_with_replacement(range(3), size)]

    def missed(bins, others=()):
        """The probability that one of these is missed by the threshold of the rest, and of others."""
        whole = np.bincount([*bins, *others], minlength=3)
        return sum(below(own, whole - (np.arange(3) == place))[place] for place in bins) / len(bins)

    alone = [missed(bins) for bins in sets]
    for share in (Fraction(k, 10) for k in range(11)):
        worst = max(float(share) * one + float(1 - share) * two for one in alone for two in alone)
        assert worst <= 0.5 + 1e-12
    together = max(missed((2,) * k, (0,) * 5) for k in (1, 2))
    assert together > 0.9  # a class with large scores, if the other one is five times as frequent


def test_counts_are_sums_of_whole_weights(records):
    scores, labels = records
    counted = weighted_counts(scores, CANDIDATES, "lac", SHIFT, labels, None)
    by_class = {name: confide.ScoreHistogram.from_scores(scores[labels == name], CANDIDATES) for name in ("a", "b")}
    assert SHIFT.steps == (1, 4)
    assert (counted.counts == by_class["a"].counts + 4 * by_class["b"].counts).all()
    assert (weighted_sum(by_class, SHIFT).counts == counted.counts).all()
    weights = RecordWeights.bounded(1.6)
    single = weighted_counts(scores, CANDIDATES, "lac", weights, None, np.where(labels == "a", 0.4, 1.6))
    assert (
        single.counts == by_class["a"].counts * round(0.4 * weights.scale) + by_class["b"].counts * weights.heaviest
    ).all()
    edges = np.append(CANDIDATES.edges, np.inf)
    on_edges = weighted_counts(edges, CANDIDATES, None, RecordWeights.bounded(1), None, np.ones(len(edges)))
    assert len(set(on_edges.counts)) == 1  # a score at a candidate belongs to it


@pytest.mark.parametrize("claimed", [None, ClassShift.of_shares({"a": 0.5, "b": 0.5}, {"a": 0.1, "b": 0.9}).fields()])
def test_a_file_that_claims_another_population_raises(records, claimed):
    scores, labels = records
    options = {"score": "lac", "candidates": CANDIDATES}
    content = json.loads(confide.calibrate(scores, 0.1, 1.0, class_weights=SHIFT, labels=labels, **options).to_json())
    assert content["request"].pop("population") == SHIFT.fields()
    content["request"] |= {} if claimed is None else {"population": claimed}
    with pytest.raises(FormatError):
        confide.Release.from_json(signed(content))


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"class_weights": {"a": 1, "b": 2}}, "class_weights"),
        ({"weights": [1.0, 1.0]}, "weights"),
        ({"weights": [1.0, 3.0], "weight_bound": 2}, "weights"),
        ({"weights": [1.0, np.nan], "weight_bound": 2}, "weights"),
        ({"weights": [1.0], "weight_bound": 2}, "weights"),
        ({"weights": [1.0, 1.0], "weight_bound": 0}, "weight_bound"),
        ({"class_weights": {"a": 1}, "labels": ["a", "c"]}, "labels"),
        ({"class_weights": {"a": 1, "b": -1}, "labels": ["a", "b"]}, "class_weights['b']"),
        ({"class_weights": {"a": 1, "b": "1e-" + "8" * 70}, "labels": ["a", "b"]}, "class_weights['b']"),
        ({"class_weights": {"a": 0, "b": 0}, "labels": ["a", "b"]}, "class_weights"),
        ({"class_weights": {"a": 1, "b": 2}, "labels": ["a", "b"], "neighbors": "replace_one"}, "neighbors"),
        ({"class_weights": {"a": 1, "b": 2}, "labels": ["a", "b"], "delta": 0.05}, "delta"),
        ({"class_weights": {"a": 1, "b": 2}, "labels": ["a", "b"], "n_min": 50}, "n_min"),
        ({"class_weights": {"a": 1, "b": 2}, "labels": ["a", "b"], "mechanism": "noisy-histogram"}, "mechanism"),
        ({"class_weights": {"a": 1}, "labels": ["a", "a"], "weights": [1, 1], "weight_bound": 2}, "class_weights"),
    ],
)  # fmt: skip
def test_options_that_exclude_weights_raise(options, argument):
    with refused(InputError, argument) as caught:
        confide.calibrate([0.123, 0.456], 0.1, 1.0, candidates=CANDIDATES, **options)
    assert "0.123" not in str(caught.value)
    assert "3.0" not in str(caught.value)


def test_invalid_shares_raise():
    with refused(InputError, "source"):
        ClassShift.of_shares({"a": 1, "b": 0}, {"a": 0.5, "b": 0.5})
    with refused(InputError, "source"):
        ClassShift.of_shares({"a": 0.5, "b": 0.2}, {"a": 0.5, "b": 0.5})
    with refused(InputError, "target"):
        ClassShift.of_shares({"a": 0.5, "b": 0.5}, {"a": 0.5, "c": 0.5})
    with refused(InputTypeError, "class_weights"):
        confide.calibrate([0.1], 0.1, 1.0, class_weights=[1, 2], labels=["a"])
    assert ClassShift.of_shares({"a": 0.5, "b": 0.5, "c": 0}, {"a": 1, "b": 0, "c": 0}).steps == (1, 0, 0)


def test_weights_without_small_integers_are_rounded_with_a_stated_error():
    odd = ClassShift.of_weights({"a": "0.999983", "b": "0.333337", "c": "7.000001"})
    assert odd.heaviest == 2**20
    shares = np.array([float(r) for r in odd.ratios]) / sum(float(r) for r in odd.ratios)
    rounded = np.array(odd.steps) / sum(odd.steps)
    assert 0 < np.abs(shares - rounded).sum() / 2 < odd.rounding < 1e-5
    assert SHIFT.rounding == 0
    for near in ("1/3", "2/3"):  # rounded down alone, and up alone
        assert ClassShift.of_weights({"a": "0.999983", "b": near}).rounding > 0
    assert rounding_text(odd).endswith("if all classes are equally frequent among those that calibrate")
    known = ClassShift.of_shares({"a": 0.999999, "b": 0.000001}, {"a": 0.01, "b": 0.99})
    meant, got = (np.array(known.source, float) * np.array(own, float) for own in (known.ratios, known.steps))
    assert 0 < np.abs(meant / meant.sum() - got / got.sum()).sum() / 2 <= known.rounding
    assert rounding_text(known) == f"rounded, which moves coverage by at most {known.rounding:.1e}"
    assert RecordWeights.bounded(4).rounding < 4e-5
    for bound in (0.3, 1, 2.5, 4, 9999, 0.001):
        weights = RecordWeights.bounded(bound)
        assert 2**16 <= weights.heaviest <= 2**17
        assert weights.whole(np.array([bound]))[0] == weights.heaviest


@pytest.mark.parametrize(("alpha", "epsilon"), [(1e-6, 1.0), (0.001, 1e-3), ("1/3", 1e6), (0.99, 0.05)])
@pytest.mark.parametrize("population", [SHIFT, RecordWeights.bounded(3)])
def test_any_level_and_privacy_loss_is_certified(alpha, epsilon, population):
    own = {"records_per_person": 3}
    asked = terms(alpha, 40, epsilon, population=population, **own)
    mechanism = planned(asked, 1000).mechanism
    assert certify(mechanism, asked.alpha, 40, None, 1, None).coverage == float(asked.level)
    spent = privacy_statement(mechanism, "add_remove", 3, asked.size_scale).epsilon
    assert epsilon * (1 - 1e-9) <= spent <= epsilon
