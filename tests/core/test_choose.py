"""`choose_score`: shares, ledger, files, bad input, and what a choice depends on."""

import copy
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import confide
from confide.errors import BudgetError, EarlierReleaseWarning, FormatError, InputError, InputTypeError, OtherDataError
from confide.ledger import Dataset, Group, Ledger
from confide.mechanisms import Chosen
from confide.scores import NamedScores, all_scores, class_score
from confide.selection import selection_law
from tests.draws import SECURE, always, likeliest, recording
from tests.files import signed
from tests.refused import Refused, assert_no_private_value, planted_scores

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(6) / 4, 3000)
LABELS = (P.cumsum(axis=1) < RNG.random((3000, 1))).sum(axis=1).clip(max=5)
POOR = RNG.permutation(P)  # of other records
OFFERS = {"good": class_score(P, LABELS, "lac"), "poor": class_score(POOR, LABELS, "lac")}
SIZES = {"good": all_scores(P), "poor": all_scores(POOR)}
KEY = bytes(range(32))


def test_better_model_is_chosen_and_the_release_states_the_choice():
    choice = confide.choose_score(OFFERS, 0.1, 2.0, sizes=SIZES)
    assert choice.name == "good"  # otherwise with probability below 1e-20
    assert (np.asarray(choice.scores) == np.asarray(OFFERS["good"])[choice.rest]).all()
    released = choice.calibrate(epsilon=1.0)
    assert released.chosen == Chosen("good", ("good", "poor"), Fraction(1, 5), 2.0, 6)
    assert (released.score, released.classes, released.epsilon, released.coverage) == ("lac", 6, 2.0, 0.9)
    assert (
        "'good', chosen among 2 (good, poor) by the mean size, each at most 6, on a share of "
        "1/5 of the records, at epsilon 2" in str(released)
    )
    assert confide.Release.from_json(released.to_json()) == released
    content = json.loads(released.to_json())
    content["request"]["chosen"]["epsilon"] = 1.0
    with pytest.raises(FormatError):
        confide.Release.from_json(signed(content))


def test_coins_are_new_in_every_call_and_hashes_the_same():
    ids = np.arange(3000)
    first, second = (confide.choose_score(OFFERS, 0.1, 1.0, sizes=SIZES) for _ in range(2))
    assert (first.rest != second.rest).any()
    assert 0.72 < first.rest.mean() < 0.88  # binomial, 3000 coins of 1/5: below 1e-20 on each side
    one, other = (confide.choose_score(OFFERS, 0.1, 1.0, sizes=SIZES, ids=ids, key=KEY) for _ in range(2))
    assert (one.rest == other.rest).all()
    assert 0.75 < one.rest.mean() < 0.85


def test_hash_of_a_record_depends_on_its_own_id_alone():
    """A record that is left out, and another order, change no other record's share; equal ids have the same."""
    ids = [f"person {i % 1000}" for i in range(3000)]
    every = confide.choose_score(OFFERS, 0.1, 1.0, sizes=SIZES, ids=ids, key=KEY).rest
    order = np.random.default_rng(1).permutation(3000)[:-1]
    fewer = confide.choose_score(
        {name: scores[order] for name, scores in OFFERS.items()}, 0.1, 1.0,
        sizes={name: table[order] for name, table in SIZES.items()}, ids=np.array(ids)[order], key=KEY,
    ).rest  # fmt: skip
    assert (fewer == every[order]).all()
    assert (every.reshape(3, 1000) == every[:1000]).all()
    other = confide.choose_score(OFFERS, 0.1, 1.0, sizes=SIZES, ids=ids, key=bytes(32)).rest
    assert (other != every).any()


def test_with_a_fixed_sampler_the_choice_depends_on_counts_alone(draw_with):
    """The order of records, and scores that move inside a bin, change neither the utilities nor the choice."""
    drawn = []
    draw_with(select=recording(drawn, likeliest), uniforms=np.zeros)  # all records choose
    order = np.random.default_rng(2).permutation(3000)
    nearly = {name: np.nextafter(scores, 1) for name, scores in OFFERS.items()}
    confide.choose_score(OFFERS, 0.1, 1.0, sizes=SIZES)
    confide.choose_score(
        {k: v[order] for k, v in OFFERS.items()}, 0.1, 1.0, sizes={k: v[order] for k, v in SIZES.items()}
    )
    confide.choose_score({k: type(OFFERS[k]).of(v, "lac", 6) for k, v in nearly.items()}, 0.1, 1.0, sizes=SIZES)
    assert drawn[0] == drawn[1] == drawn[2]


def test_utilities_are_those_of_the_definition(draw_with):
    """Sizes and covered records, counted one by one at every candidate."""
    drawn = []
    draw_with(select=recording(drawn, always(0)), uniforms=np.zeros)
    offers, sizes = {k: v[:60] for k, v in OFFERS.items()}, {k: v[:60] for k, v in SIZES.items()}
    confide.choose_score(offers, 0.1, 1.0, sizes=sizes, largest_size=3)
    grid = confide.Candidates.quantiles(confide.candidates.Spread("probability"), 480).edges
    for name, utility in zip(offers, drawn[0][0], strict=True):
        at_each = []
        for t in [*grid, np.inf]:
            size = np.minimum((sizes[name] <= t).sum(axis=1), 3).sum()
            missing = max(9 * 61 - 10 * int((offers[name] <= t).sum()), 0)
            at_each.append(-10 * int(size) - 2 * 3 * missing)
        assert utility == max(at_each)


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "signal"), [(8, 1.5), (100, 2.0)])
def test_saturated_outputs_choose_the_smallest_mean_size(classes, signal, draw_with):
    """Sets of `margin` are all or nothing: it wins if large sizes count the same, and has the larger mean size."""
    rng, n = np.random.default_rng(1), 4000
    labels, logits = rng.integers(0, classes, n), rng.normal(size=(n, classes))
    logits[np.arange(n), labels] += signal
    p = np.exp(10 * (logits - logits.max(axis=1, keepdims=True)))
    p /= p.sum(axis=1, keepdims=True)
    offers = {name: class_score(p, labels, name) for name in ("margin", "lac")}
    sizes = {name: all_scores(p, name) for name in offers}
    means = {name: (sizes[name] <= np.quantile(offers[name], 0.9, method="higher")).mean() for name in offers}
    assert means["lac"] < 0.8 * means["margin"]
    laws = []

    def recorded(utilities, scale):
        laws.append(selection_law(np.exp((utilities - utilities.max()) / scale)))
        return SECURE.select(utilities, scale)

    draw_with(select=recorded)
    fixed = {"sizes": sizes, "ids": np.arange(n), "key": KEY, "choice_share": "1/2"}
    choice = confide.choose_score(offers, 0.1, 4.0, **fixed)
    assert laws[0][0] < 1e-6  # the exact probability to choose margin
    assert (choice.name, choice.chosen.largest_size) == ("lac", classes)
    assert f"by the mean size, each at most {classes}," in str(choice.calibrate())
    confide.choose_score(offers, 0.1, 4.0, **fixed, largest_size=math.isqrt(classes - 1) + 1)
    assert laws[-1][0] > 0.99  # the default of 0.3, the square root of the number of classes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.errors.CoverageWarning")
def test_no_records_choose_uniformly_and_calibrate_to_infinity():
    empty = {"a": np.zeros(0), "b": np.zeros(0)}
    choice = confide.choose_score(empty, 0.1, 1.0, sizes=dict.fromkeys(empty, np.zeros((0, 3))))
    assert choice.name in empty
    assert choice.calibrate().chosen.among == ("a", "b")


@pytest.mark.slow
def test_ledger_charges_the_larger_loss(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", limit=2.0)
    choice = confide.choose_score(OFFERS, 0.1, 1.0, sizes=SIZES, ledger=ledger, dataset="patients")
    assert [entry.kind for entry in ledger.account("patients").entries] == ["choice"]
    choice.calibrate()
    assert ledger.account("patients").spent().epsilon == 1.0
    confide.choose_score(OFFERS, 0.1, 0.75, sizes=SIZES, ledger=ledger, dataset="patients").calibrate()
    assert ledger.account("patients").spent().epsilon == 1.75  # new coins: both requests add up
    with pytest.raises(BudgetError):
        confide.choose_score(OFFERS, 0.1, 0.5, sizes=SIZES, ledger=ledger, dataset="patients")
    assert ledger.account("patients").spent().epsilon == 1.75


def test_ledger_recognises_a_choice_by_ids(tmp_path):
    """The same key is the same partition: the same request costs nothing, another level of the rest its own loss."""
    ledger, ids = Ledger(tmp_path / "budget.db", limit=3.0), np.arange(3000)
    request = {"sizes": SIZES, "ids": ids, "key": KEY, "ledger": ledger, "dataset": "patients"}
    first = confide.choose_score(OFFERS, 0.1, 1.0, **request)
    released = first.calibrate()
    with pytest.warns(EarlierReleaseWarning):
        again = confide.choose_score(OFFERS, 0.1, 1.0, **request)
    assert again.name == first.name
    with pytest.warns(EarlierReleaseWarning):
        assert again.calibrate() == released
    assert ledger.account("patients").spent().epsilon == 1.0
    again.calibrate(alpha=0.2)
    assert ledger.account("patients").spent().epsilon == 2.0  # on the records that did not choose
    assert all(KEY.hex() not in str(entry) for entry in ledger.account("patients").entries)
    fewer = {name: scores[:-100] for name, scores in OFFERS.items()}
    with pytest.raises(OtherDataError):
        confide.choose_score(
            fewer, 0.1, 1.0, **request | {"ids": ids[:-100], "sizes": {k: v[:-100] for k, v in SIZES.items()}}
        )


@pytest.mark.slow
def test_records_of_one_person_multiply_the_loss():
    choice = confide.choose_score(OFFERS, 0.1, 1.0, sizes=SIZES, records_per_person=4)
    assert choice.chosen.epsilon == 0.25
    assert choice.calibrate().privacy.epsilon == 1.0
    other = confide.calibrate(choice.scores, 0.1, 1.0, records_per_person=10, chosen=choice.chosen)
    assert other.privacy.epsilon == 2.5  # ten records, each with a loss of 1/4 in the choice


def test_choice_is_not_pickled_copied_or_shown():
    planted = planted_scores(500)
    offers = {name: NamedScores.of(planted, "absolute_residual") for name in ("a", "b")}
    choice = confide.choose_score(offers, 0.1, 1.0, largest_size=1.0)
    assert_no_private_value(repr(choice))
    for unwanted in (pickle.dumps, copy.deepcopy):
        with pytest.raises(InputTypeError):
            unwanted(choice)


GOOD = {"scores": OFFERS, "alpha": 0.1, "epsilon": 1.0, "sizes": SIZES}
PLANTED = {name: NamedScores.of(planted_scores(3000), "absolute_residual") for name in OFFERS}
WIDTHS = {"scores": PLANTED, "sizes": None, "largest_size": 1.0}
IDS = np.arange(3000)


@pytest.mark.parametrize(
    "row",
    [
        *(
            Refused(confide.choose_score, GOOD, change, argument, kind=InputError)
            for change, argument in [
                ({"scores": {}}, "scores"),
                ({"scores": {1: OFFERS["good"], 2: OFFERS["poor"]}}, "scores"),
                ({"scores": OFFERS | {"poor": SIZES["poor"]}}, "scores['poor']"),
                ({"alpha": 1.5}, "alpha"),
                ({"epsilon": 1e-9}, "epsilon"),
                ({"epsilon": 1e-6, "records_per_person": 10}, "epsilon"),
                ({"choice_share": 0}, "choice_share"),
                ({"sizes": None}, "sizes"),
                ({"sizes": {"good": SIZES["good"]}}, "sizes"),
                ({"scores": {"good": OFFERS["good"], "poor": PLANTED["poor"]}}, "scores"),
                ({"sizes": SIZES | {"poor": SIZES["poor"][1:]}}, "sizes['poor']"),
                ({"sizes": SIZES | {"poor": OFFERS["poor"]}}, "sizes['poor']"),
                ({"sizes": SIZES | {"poor": np.full((3000, 6), np.nan)}}, "sizes['poor']"),
                ({"sizes": SIZES | {"poor": SIZES["poor"] + 2}}, "scores"),
                ({"largest_size": 0}, "largest_size"),
                ({"largest_size": 7}, "largest_size"),
                (WIDTHS | {"largest_size": None}, "largest_size"),
                (WIDTHS | {"largest_size": -1.0}, "largest_size"),
                (WIDTHS | {"sizes": dict.fromkeys(OFFERS, np.zeros((3000, 3)))}, "sizes['good']"),
                (WIDTHS | {"sizes": dict.fromkeys(OFFERS, np.full((3000, 2), np.inf))}, "sizes['good']"),
                ({"key": KEY}, "ids"),
                ({"ids": IDS, "key": b"short"}, "key"),
                ({"ids": IDS[1:], "key": KEY}, "ids"),
                ({"ids": IDS + 0.5, "key": KEY}, "ids"),
                ({"unit": 2.0}, "unit"),
                ({"records_per_person": 0}, "records_per_person"),
                ({"dataset": "patients"}, "ledger"),
                ({"dataset": Dataset("patients", Group("ward", "a"))}, "dataset"),
                ({"again": True}, "again"),
            ]
        ),
        *(
            Refused(confide.choose_score, GOOD, change, argument, kind=InputTypeError)
            for change, argument in [
                ({"scores": [1, 2]}, "scores"),
                ({"alpha": [0.1, 0.2]}, "alpha"),
                ({"sizes": SIZES | {"poor": "text"}}, "sizes['poor']"),
                ({"half": 0.5}, "half"),
            ]
        ),
    ],
    ids=str,
)
def test_bad_input_raises(row):
    row.check()


@pytest.mark.slow
def test_widths_of_intervals_are_compared_in_steps(draw_with):
    """Widths base + slope t, at least 0 and at most 20, rounded down to thousandths of 20."""
    drawn = []
    draw_with(select=recording(drawn, always(0)), uniforms=np.zeros)
    rng = np.random.default_rng(0)
    scores = {name: NamedScores.of(rng.normal(size=40), "cqr") for name in ("a", "b")}
    widths = {name: np.column_stack([rng.normal(5, 4, 40), np.full(40, 2.0)]) for name in scores}
    confide.choose_score(scores, 0.2, 1.0, sizes=widths, largest_size=20.0, unit=1.0)
    grid = confide.Candidates.quantiles(confide.candidates.Spread("signed", 1.0), 480).edges
    for name, utility in zip(scores, drawn[0][0], strict=True):
        at_each = []
        for t in grid:
            size = sum(int(1000 * min(max(base + slope * t, 0), 20) / 20) for base, slope in widths[name])
            missing = max(4 * 41 - 5 * int((scores[name] <= t).sum()), 0)
            at_each.append(-5 * size - 2 * 1000 * missing)
        assert abs(utility - max(at_each)) <= 5 * 40  # the order of a division and a product


@pytest.mark.slow
def test_coverage_at_1000_records_is_within_two_thousandths():
    """Epsilon 1 and a share of 1/5: the expected coverage for 1000 and for 800 records, over the noise."""
    whole = confide.plan(alpha=0.1, epsilon=1.0, n=1000, score="lac").expected_coverage
    rest = confide.plan(alpha=0.1, epsilon=1.0, n=800, score="lac").expected_coverage
    assert 0.9 < whole <= rest < whole + 0.002
