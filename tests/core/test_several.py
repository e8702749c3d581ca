"""Several thresholds at once, and populations with a known shift: privacy and coverage by enumeration."""

import itertools
import json
import math
import warnings
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

import confide
from confide.core import ClassShift, RecordWeights, records_needed, rounding_text, weighted_sum
from confide.errors import FormatError, InputError, InputTypeError
from confide.guarantee import RecordCount
from confide.mechanisms import certify
from confide.mechanisms.privacy import PrivacyStatement, parallel_composition, privacy_statement, sequential_composition
from confide.mechanisms.slopes import slopes_for
from confide.selection import zcdp_of_range
from tests.calibrations import weighted_counts
from tests.designs import planned, terms
from tests.exact import histograms, mechanism_law
from tests.files import signed
from tests.refused import refused


@pytest.mark.slow
def test_parallel_composition_by_enumeration():
    """Two groups, three bins: every data set, every neighbour under both adjacencies, every pair of outputs."""
    mechanism = slopes_for(Fraction(7, 10), Fraction(2), 3, 2, "add_remove", 1.0)
    part = privacy_statement(mechanism, "add_remove", 1)
    added, replaced = (
        parallel_composition([part, part], relation).epsilon for relation in ("add_remove", "replace_one")
    )
    log = {(n, h): np.log(mechanism_law(mechanism, h)) for n in range(5) for h in histograms(n, 3)}

    def distance(one, other):
        """Worst log-ratio of the pair of thresholds, for independent runs on the two groups."""
        first, second = (log[sum(a), a] - log[sum(b), b] for a, b in zip(one, other, strict=True))
        return np.abs(first[:, None] + second[None, :]).max()

    def without(h):
        return [tuple(v - (i == b) for i, v in enumerate(h)) for b in range(3) if h[b]]

    def plus(h):
        return [tuple(v + (i == b) for i, v in enumerate(h)) for b in range(3)]

    worst_added = worst_replaced = 0.0
    for n, k in itertools.product(range(4), range(4)):
        for a, b in itertools.product(histograms(n, 3), histograms(k, 3)):
            for grown in plus(a):
                worst_added = max(worst_added, distance((a, b), (grown, b)))
            for less in without(a):
                for stay in plus(less):
                    worst_replaced = max(worst_replaced, distance((a, b), (stay, b)))
                for moved in plus(b):
                    worst_replaced = max(worst_replaced, distance((a, b), (less, moved)))
    assert worst_added <= added + 1e-12
    assert 1.1 * worst_added < worst_replaced <= replaced + 1e-12  # moving between groups costs more than one change


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_losses_add_up():
    own = {"candidates": confide.Candidates.unit(200), "neighbors": "replace_one"}
    parts = [confide.calibrate(np.linspace(0, 1, 4000), 0.1, e, score="lac", **own) for e in (0.1, 0.2)]
    total = sequential_composition([part.privacy for part in parts])
    assert total.epsilon >= sum(Fraction(p.privacy.epsilon) for p in parts)
    assert total.epsilon == pytest.approx(0.3)
    assert total.add_remove is None
    for epsilon, count in [(1.0, 3), (0.3, 7), (2.7, 2)]:
        alphas = [k / 20 for k in range(1, count + 1)]
        levels = confide.calibrate(np.linspace(0, 1, 4000), alphas, epsilon, score="lac", **own)
        assert epsilon * 0.999 < levels.privacy.epsilon <= epsilon


@pytest.mark.long
def test_training_conditional_levels_hold_together():
    released = confide.calibrate(np.linspace(0, 1, 5000), [0.1, 0.2], 2.0, score="lac", delta=0.1)
    assert [part.guarantee.delta for part in released.parts.values()] == [0.05, 0.05]
    assert {part.guarantee.kind for part in released.parts.values()} == {"training_conditional"}


@pytest.mark.slow
def test_replace_one_halves_the_budget_of_each_group():
    scores, groups = np.linspace(0, 1, 20_000), np.arange(20_000) % 2
    released = confide.calibrate(scores, 0.1, 2.0, groups=groups, names=[0, 1], score="lac", neighbors="replace_one")
    assert released.privacy.epsilon <= 2
    assert all(part.privacy.add_remove == 1.0 for part in released.parts.values())
    assert all(part.n is None for part in released.parts.values())
    people = confide.calibrate(scores, 0.1, 2.0, groups=groups, names=[0, 1], score="lac", records_per_person=4)
    assert people.privacy.add_remove == 0.5
    assert people.privacy.epsilon == 2.0
    zcdp = confide.calibrate(scores, 0.1, groups=groups, names=[0, 1], rho=0.4, score="lac", neighbors="replace_one")
    assert 0.16 < zcdp.privacy.rho <= 0.4 + 1e-12


@pytest.mark.long
def test_both_sides_of_cqr():
    """Skewed noise: two thresholds cover both sides, and are narrower than one for both; exact test at level 1e-6."""
    rng = np.random.default_rng(3)
    hits, width = 0, []
    for _ in range(120):
        y = rng.exponential(size=801)
        pairs = np.tile([0.3, 1.5], (801, 1))
        released = confide.calibrate_sides(pairs[1:], y[1:], 0.2, 2.0)
        (low,), (high,) = confide.predict_interval(pairs[:1], released)
        hits += low <= y[0] <= high
        width.append(high - low)
    assert stats.binomtest(hits, 120, 0.8, alternative="less").pvalue > 1e-6
    assert np.mean(width) < 2.6  # the 10 % and 90 % quantiles are 2.2 apart
    assert released.alpha == Fraction(1, 5)
    assert released.privacy.epsilon <= 2
    pair = confide.calibrate_sides(pairs, y, ("0.05", "0.15"), 8.0, share_low="0.25", delta=0.1)
    assert (pair["low"].alpha, pair["low"].guarantee.delta) == (Fraction(1, 20), 0.05)
    assert pair["low"].privacy.epsilon == 2


def test_rho_of_two_groups_is_that_of_both_ranges():
    part = PrivacyStatement("add_remove", 1.0, 1, 1.0, 1.0, zcdp_of_range(1.0))
    assert parallel_composition([part, part], "replace_one").rho == zcdp_of_range(1.0, 1.0) < 0.247


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
    assert certify(mechanism, asked.alpha, 40, RecordCount(1, public=False), None).coverage == float(asked.level)
    spent = privacy_statement(mechanism, "add_remove", 3, asked.size_scale).epsilon
    assert epsilon * (1 - 1e-9) <= spent <= epsilon


# --- several levels from one noisy histogram: its law, its price, every further level, files and ledgers

LEVELS = [0.2, 0.1, 0.05]
SCORES = np.random.default_rng(0).random(3000)
RELATIONS = ["add_remove", "replace_one"]


@pytest.fixture(scope="module", params=RELATIONS)
def released(request):
    return confide.calibrate(SCORES, LEVELS, 1.0, score="lac", neighbors=request.param)


def last_rule(counts, limit):
    """The first candidate from which on at most `limit` noisy records lie beyond each, by a plain loop."""
    chosen, beyond = len(counts) - 1, 0
    for place in range(len(counts) - 1, 0, -1):
        beyond += counts[place]
        if beyond > limit:
            break
        chosen = place - 1
    return chosen


def limit_of(release, alpha):
    """floor(alpha (n + 1) - 1 - c), from the numbers that the release states (Theorems W3, W3b)."""
    first = release[0.1]
    n, scale = (release.n, 2.0) if release.n is not None else (first.size.counted, 1 / (1 - 1 / first.size.scale))
    return math.floor(alpha * (n + 1) - 1 - 1 / (1 - math.exp(-1 / scale)))


def test_every_threshold_follows_from_the_released_counts(released):
    candidates = confide.Candidates.from_recipe(released[0.1].recipe).values
    assert len({part.noisy_counts for part in released.values()}) == 1
    for alpha, part in released.items():
        assert part.threshold == candidates[last_rule(part.noisy_counts, limit_of(released, float(alpha)))]
        assert part.coverage >= float(1 - alpha)
    thresholds = [released[alpha].threshold for alpha in LEVELS]
    assert thresholds == sorted(thresholds)
    assert max(thresholds) < 1


def test_all_levels_cost_as_much_as_one(released):
    neighbors = "add_remove" if released.n is None else "replace_one"
    alone = confide.calibrate(SCORES, 0.1, 1.0, score="lac", mechanism="noisy-histogram", neighbors=neighbors)
    assert released.privacy == alone.privacy
    assert released.privacy.epsilon == 1.0
    assert all(part.privacy.epsilon == 1.0 for part in released.values())


def test_every_other_level_follows_as_well(released):
    candidates = confide.Candidates.from_recipe(released[0.1].recipe).values
    for alpha in ("0.15", "1/7", "0.075", 0.5, "0.99"):
        another = released.at(alpha)
        counts, level = released[0.1].noisy_counts, float(Fraction(alpha))
        assert another.threshold == candidates[last_rule(counts, limit_of(released, level))]
        assert another.coverage >= float(1 - Fraction(alpha))
        assert another.privacy == released.privacy
        assert confide.Release.from_json(another.to_json()) == another
    assert released.at(0.1).threshold == released[0.1].threshold
    assert released[0.2].threshold < released.at(0.15).threshold < released[0.1].threshold
    again = confide.Release.from_json(released.to_json())
    assert again.at(0.15) == released.at(0.15)
    assert released.at(0.3).at(0.15) == released.at(0.15)


def test_a_level_that_is_not_resolved(released):
    with pytest.warns(confide.CoverageWarning, match=r"for alpha=0.0001 excludes nothing: every label is in every set"):
        useless = released.at(0.0001)
    assert useless.threshold == math.inf
    assert confide.Release.from_json(useless.to_json()) == useless
    for outside in (0, 1.5, None):
        with refused(InputError, "alpha"):
            released.at(outside)
    with refused(InputError, "alpha"):  # a page, `limits` and sets know the stated levels
        released[0.15]
    with refused(InputError, "alpha"):
        released.level_of(0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"rho": 0.1, "score": "lac"},
        {"epsilon": 1.0, "score": "lac", "delta": 0.1},
        {"epsilon": 1.0, "score": "lac", "shares": [0.2, 0.3, 0.5]},
        {"epsilon": 1.0, "score": "absolute_residual"},
        {"epsilon": 1.0},
    ],
    ids=["rho", "delta", "shares", "no unit", "no name"],
)
def test_levels_that_divide_the_budget_know_the_stated_ones_only(asked):
    released = confide.calibrate(SCORES, LEVELS, **asked)
    assert all(part.noisy_counts is None and part.mechanism.name == "slopes" for part in released.values())
    assert released.at(0.1).threshold == released[0.1].threshold
    with refused(InputError, "alpha"):
        released.at(0.15)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"unit": 1.0}, {"candidates": confide.Candidates.around(1.0)}])
def test_residuals_with_a_unit_or_a_guess_have_one_histogram(options):
    released = confide.calibrate(SCORES, LEVELS, 1.0, score="absolute_residual", **options)
    assert released.at(0.15).threshold > released[0.2].threshold
    assert confide.Release.from_json(released.to_json()) == released


@pytest.mark.slow
def test_one_histogram_of_one_level_or_of_groups_answers_others_too():
    asked = {"score": "lac", "mechanism": "noisy-histogram"}
    single = confide.calibrate(SCORES, 0.1, 1.0, **asked)
    assert single.at(0.2).threshold < single.at(0.1).threshold == single.threshold
    ward = np.arange(3000) % 2
    groups = confide.calibrate(SCORES, 0.1, 1.0, groups=ward, names=[0, 1], **asked)
    assert groups[0].noisy_counts != groups[1].noisy_counts
    assert all(groups.at(0.2)[name].threshold < groups[name].threshold for name in (0, 1))
    assert confide.Release.from_json(groups.to_json()).at(0.2) == groups.at(0.2)
    slopes = confide.calibrate(SCORES, 0.1, 1.0, score="lac")
    with refused(InputError, "alpha"):
        slopes.at(0.2)


def test_candidates_of_your_own_are_known_to_the_maker_alone():
    own = confide.Candidates.of(np.linspace(0.01, 1, 100))
    released = confide.calibrate(SCORES, LEVELS, 1.0, score="lac", candidates=own)
    assert confide.Release.from_json(released.to_json()) == released
    with refused(InputError, "alpha"):
        released.at(0.15)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["thresholds"][0]["counts"].__setitem__(-1, 3000),
        lambda content: content["thresholds"][0]["counts"].__setitem__(-1, 2**63),
        lambda content: content["thresholds"][0]["counts"].pop(),
        lambda content: content["thresholds"][0].pop("counts"),
        lambda content: content["thresholds"][1].__setitem__("counts", content["thresholds"][0]["counts"]),
        lambda content: content["thresholds"][1].__setitem__("threshold", content["thresholds"][0]["threshold"]),
        lambda content: content["thresholds"][1]["mechanism"].__setitem__("beyond", 400),
    ],
    ids=["another count", "too large", "one missing", "all missing", "twice", "another threshold", "another limit"],
)
def test_a_file_whose_thresholds_do_not_follow_is_refused(released, change):
    content = json.loads(released.to_json())
    change(content)
    with pytest.raises(confide.errors.FormatError):
        confide.Release.from_json(signed(content))


def test_the_counts_stand_once_in_a_file(released):
    stored = json.loads(released.to_json())["thresholds"]
    assert ["counts" in part for part in stored] == [True, False, False]


@pytest.mark.long
def test_records_needed_make_useless_thresholds_rare():
    """At the stated number about 1 in 100 calibrations is useless: at most 30 of 1000 (by chance 1e-7 if it is 1 %)."""
    needed = records_needed(confide.calibrate(SCORES, [0.3, 0.1], 1.0, score="lac"))
    rng, useless = np.random.default_rng(1), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        for _ in range(1000):
            scores = rng.random(needed)
            useless += confide.calibrate(scores, [0.3, 0.1], 1.0, score="lac")[0.1].threshold > scores.max()
    assert useless <= 30
