"""Public candidates: increasing, ending in +inf, of the promised resolution, and the same on every machine."""

import copy
import json
import math
import pickle

import numpy as np
import pytest

import confide
from confide import Candidates
from confide.candidates import SHAPES, Spread
from confide.candidates.lists import _rounded
from confide.support import MOST_CANDIDATES
from tests.refused import Refused, numbers, refused

ROUNDING = 1e-11  # twelve significant digits, relative

MADE = {
    "unit": lambda: Candidates.unit(),
    "unit 1": lambda: Candidates.unit(1),
    "unit 2": lambda: Candidates.unit(2),
    "unit 3": lambda: Candidates.unit(3),
    "logit": lambda: Candidates.unit(1000, "logit"),
    "logit 1": lambda: Candidates.unit(1, "logit"),
    "logit 2": lambda: Candidates.unit(2, "logit"),
    "logit 3": lambda: Candidates.unit(3, "logit"),
    "published": lambda: Candidates.published(212),
    "published 1": lambda: Candidates.published(1),
    "reference": lambda: Candidates.from_reference(np.random.default_rng(0).normal(size=99), 50),
    "reference of ties": lambda: Candidates.from_reference([1.0, 1.0, 2.0], 50),
    "of": lambda: Candidates.of([-1.5, -0.0, 3.25]),
    "of infinity": lambda: Candidates.of([np.inf]),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE.keys())
def test_increasing_ending_in_infinity_read_only_and_copied_faithfully(make):
    candidates = make()
    assert candidates.values[-1] == np.inf
    assert np.isfinite(candidates.edges).all()
    assert (candidates.values[1:] > candidates.values[:-1]).all()
    assert candidates.size == len(candidates.values) == len(candidates.edges) + 1
    assert candidates.edges.dtype == np.float64
    assert not np.signbit(candidates.edges[candidates.edges == 0]).any()
    for one in (candidates, pickle.loads(pickle.dumps(candidates)), copy.copy(candidates), copy.deepcopy(candidates)):  # noqa: S301
        assert one == candidates
        assert hash(one) == hash(candidates)
        assert one.recipe == candidates.recipe
        assert not one.edges.flags.writeable
        with pytest.raises(AttributeError):
            one.edges = np.zeros(1)
    candidates.values[0] = 7.0  # a copy
    assert candidates == make()
    kind, options = candidates.recipe["kind"], {k: v for k, v in candidates.recipe.items() if k != "kind"}
    if kind not in ("of", "from_reference"):
        again = getattr(Candidates, kind)(**options)
        assert (again, again.digest) == (candidates, candidates.digest)


def test_known_digests():
    """The same candidates on every machine and for ever: stored thresholds are compared with them."""
    known = {"unit": "ff8561cfffcb00cd", "logit": "e1c2377b3525193c"}
    assert {name: MADE[name]().digest[:16] for name in known} == known


def test_unit():
    assert Candidates.unit(5).edges.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert Candidates.unit(1).edges.tolist() == []
    assert Candidates.unit(2).edges.tolist() == [1.0]
    for size in (1, 2, 3, 10, 999, 1000, 2**16):
        candidates = Candidates.unit(size)
        assert candidates.size == size
        expected = np.arange(1, size) / max(size - 1, 1)
        np.testing.assert_allclose(candidates.edges, expected, rtol=ROUNDING, atol=0)


@pytest.mark.parametrize(
    "made",
    [
        Candidates.unit(128, "logit").edges,
        Candidates.quantiles(Spread("probability"), 23).edges,
        Candidates.quantiles(Spread("probability"), 680).edges,
        confide.scores.score_kind("lac").candidates().edges,
        (1 + Candidates.quantiles(Spread("margin"), 680).edges) / 2,
        (1 + confide.scores.score_kind("margin").candidates().edges) / 2,
    ],
)
def test_scores_of_over_confident_models_are_told_apart(made):
    """The last candidate below the largest score is 1 - 1e-12, as far as twelve digits state it."""
    assert made[-1] == 1.0
    assert 0.9e-12 < 1 - made[-2] < 1.1e-12


def test_unit_logit():
    for size in (1, 2, 3, 10, 1000, 2**16):
        candidates = Candidates.unit(size, "logit")
        assert candidates.size == size
        assert size < 2 or candidates.edges[-1] == 1.0
    edges = Candidates.unit(1000, "logit").edges
    assert edges[0] == 1e-6
    assert edges[-2] == 1 - 1e-12
    middle = edges[edges <= 1 - 1e-6]
    steps = np.diff(np.log(middle / (1 - middle)))
    np.testing.assert_allclose(steps, 2 * math.log(1e6 - 1) / (len(middle) - 1), rtol=1e-4)  # six digits near 1
    # Relative resolution at both ends, of the threshold and of one minus it; coarser beyond 1 - 1e-6.
    assert (middle[1:] / middle[:-1]).max() < 1.03
    assert ((1 - middle[:-1]) / (1 - middle[1:])).max() < 1.03
    assert ((1 - edges[:-2]) / (1 - edges[1:-1])).max() < 2.01


def test_values_are_rounded_to_twelve_digits():
    for made in (Candidates.unit(), Candidates.spread("residual", 500), Candidates.spread("any", 500)):
        edges = made.edges.tolist()
        assert edges == [float(f"{edge:.12g}") for edge in edges]


@pytest.mark.slow
def test_rounded_as_printed():
    """Also values that lie within a few units of the last place of a half, and beyond all exact powers of ten."""
    rng = np.random.default_rng(0)
    halves = (rng.integers(10**11, 10**12, (20, 1000)) + 0.5) / 10.0 ** np.arange(20)[:, None]
    near = [halves, np.nextafter(halves, 0), np.nextafter(halves, np.inf), 1 - 10.0 ** rng.uniform(-16, 0, 10_000)]
    wide = rng.choice([-1, 1], 20_000) * 10.0 ** rng.uniform(-320, 300, 20_000)
    edges = np.concatenate([*map(np.ravel, near), wide, [0.0, -0.0, 1e11, 1e12, 999999999999.5, 5e-324]])
    printed = np.array([float(f"{edge:.12g}") for edge in edges])
    assert _rounded(edges).tobytes() == printed.tobytes()


def test_of():
    exact = [0.12345678901234567, 1 / 3, math.pi * 1e200]
    assert Candidates.of(exact).edges.tolist() == exact
    for values in ([1, 2, 3], np.array([1, 2, 3], np.int8), np.float16([1, 2, 3]), (1.0, 2.0, 3.0, np.inf)):
        assert Candidates.of(values) == Candidates.of([1.0, 2.0, 3.0])
    values = np.array([1.0, 2.0])
    candidates = Candidates.of(values)
    values[0] = 9.0
    assert candidates.edges.tolist() == [1.0, 2.0]
    assert Candidates.of([-1.7e308, 1.7e308]).size == 3
    assert Candidates.of([5e-324, 1e-323]).size == 3


def test_from_reference():
    sample = np.random.default_rng(0).exponential(size=5000)
    candidates = Candidates.from_reference(sample, 101)
    np.testing.assert_allclose(candidates.edges, np.quantile(sample, np.linspace(0, 1, 100)), rtol=ROUNDING)
    assert candidates.recipe == {"kind": "from_reference", "size": 101}
    assert Candidates.from_reference([3.0], 10).edges.tolist() == [3.0]
    assert Candidates.from_reference([3.0], 1).edges.tolist() == []
    assert Candidates.from_reference(np.float32([1, 2]), 3).edges.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("values", "got"),
    [
        ([3, 1, 2], [1, 1]),
        ([1, 2, 2, 2], [2, 2]),
        ([0.0, -0.0], [1, 1]),
        ([1.7e308, -1.7e308], [1, 1]),
        ([1, np.nan, 2, np.nan], [2, 1]),
        ([1, np.inf, np.inf], [1, 1]),
        ([np.inf, 1], [1, 0]),
        ([-np.inf, 1], [1, 0]),
        ([2.0**53, 2**53 + 1], [1, 1]),
        ([], []),
        ([[1, 2]], [1, 2]),
        (5, []),
        (np.arange(MOST_CANDIDATES, dtype=float), [1048577]),
    ],
)
def test_values_that_cannot_be_used(values, got):
    """How many are wrong and where the first stands, a shape, or a number of candidates."""
    with refused(confide.errors.InputError, "candidates") as e:
        Candidates.of(values)
    assert numbers(e) == got


REFUSED = [
    *(
        Refused(make, {}, change, argument, kind=confide.errors.InputError)
        for make, change, argument in [
            (Candidates.unit, {"size": 0}, "size"),
            (Candidates.unit, {"size": MOST_CANDIDATES + 1}, "size"),
            (Candidates.unit, {"spacing": "log"}, "spacing"),
            (Candidates.from_reference, {"scores": [1, np.nan]}, "scores"),
            (Candidates.from_reference, {"scores": [1, np.inf]}, "scores"),
            (Candidates.from_reference, {"scores": []}, "scores"),
            (Candidates.from_reference, {"scores": [-1.7e308, 1.7e308], "size": 6}, "candidates"),
            (Candidates.from_reference, {"scores": [1], "size": 0}, "size"),
            (Spread, {"around": math.inf}, "around"),
            (Spread, {"around": math.nan}, "around"),
            (Spread, {"kind": "probability", "around": 1.5}, "around"),
            (Spread, {"kind": "probability", "around": -0.5}, "around"),
            (Spread, {"kind": "margin", "around": -1.5}, "around"),
            (Spread, {"kind": "residual", "around": -1.0}, "around"),
            (Spread, {"kind": "any", "around": 1.0}, "around"),
            (Spread, {"kind": "probability", "unit": 1.0}, "unit"),
            (Spread, {"kind": "residual", "unit": 0.0}, "unit"),
            (Spread, {"kind": "residual", "unit": math.inf}, "unit"),
            (Spread, {"kind": "logit"}, "kind"),
            *(
                (Candidates, {"edges": np.array(edges), "recipe": {"kind": "of", "size": 2}}, "candidates")
                for edges in ([2.0, 1.0], [np.nan], [np.inf], [[1.0]])
            ),
        ]
    ),
    *(
        Refused(make, {}, change, argument, kind=confide.errors.InputTypeError)
        for make, change, argument in [
            (Candidates.unit, {"size": 10.0}, "size"),
            (Candidates.unit, {"size": True}, "size"),
            (Candidates.unit, {"spacing": None}, "spacing"),
            (Candidates.from_reference, {"scores": ["a"]}, "scores"),
            *(
                (Candidates.of, {"values": values}, "candidates")
                for values in (["a"], [True, False], [1j], None, "0.5", np.array(["2020"], "M8[D]"))
            ),
            *((Spread, {"kind": "probability", "around": around}, "around") for around in ("0.5", True, [0.5], 1j)),
        ]
    ),
]


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_options_that_are_refused(row):
    row.check()


def test_equality_and_repr():
    assert Candidates.unit(5) == Candidates.of([0.25, 0.5, 0.75, 1.0])
    assert hash(Candidates.unit(5)) == hash(Candidates.of([0.25, 0.5, 0.75, 1.0]))
    assert Candidates.unit(5) != Candidates.unit(6)
    assert Candidates.unit(5) != [0.25, 0.5, 0.75, 1.0]
    assert eval(repr(Candidates.unit(7, "logit")), {"Candidates": Candidates}) == Candidates.unit(7, "logit")  # noqa: S307


# --- spread by a plan

KINDS = {kind: Spread(kind) for kind in SHAPES} | {
    "a unit": Spread("residual", unit=25.0),
    "a tiny unit": Spread("residual", unit=1e-300),
    "a huge unit": Spread("residual", unit=1e300),
    "a signed unit": Spread("signed", unit=1e-3),
    "a tiny signed unit": Spread("signed", unit=1e-300),
    "a huge signed unit": Spread("signed", unit=1e300),
    "a guess": Spread("probability", around=0.93),
    "a guess of 1": Spread("probability", around=1.0),
    "a guess of 0": Spread("margin", around=0.0),
    "a guess of a margin": Spread("margin", around=0.6),
    "a guess of a residual": Spread("residual", around=1e-300),
    "a huge guess": Spread("residual", around=1e300),
    "a negative guess": Spread("signed", around=-3.0),
    "a guess of a sum": Spread("mass", around=0.999999),
    "a guess with a penalty": Spread("penalised", around=1.02),
    "a guess of a rank": Spread("rank", around=4),
    "a shorter longest list": Spread("residual", most=7680),
}


@pytest.mark.parametrize("law", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("size", [1, 8, 61, 3840])
def test_spread_candidates(law, size):
    """Increasing, ending in +inf, about as many as requested, and reproduced by their recipe."""
    made = Candidates.quantiles(law, size)
    assert made.values[-1] == np.inf
    assert np.isfinite(made.edges).all()
    assert (np.diff(made.edges) > 0).all()
    assert 2 <= made.size <= 1.15 * size + 7
    again = Candidates.from_recipe(json.loads(json.dumps(dict(made.recipe))))
    assert again == made
    assert dict(again.recipe) == dict(made.recipe)


@pytest.mark.parametrize("law", [law for law in KINDS.values() if law.kind in ("residual", "signed")])
def test_spread_candidates_are_fine_around_their_unit(law):
    """Steps below 2 % for a decade around a unit, or a guess, and never above a decade."""
    edges = Candidates.quantiles(law, 1000).edges
    centre = abs(law.around or 0) or law.unit or 1.0
    positive = edges[edges > 0]
    near = positive[(positive > centre / 3) & (positive < centre * 3)]
    assert len(near) > 30
    assert (near[1:] / near[:-1]).max() < 1.05
    with np.errstate(over="ignore"):
        assert (positive[2:] / positive[1:-1]).max() <= 10.1


@pytest.mark.parametrize("law", [law for law in KINDS.values() if law.kind in ("probability", "margin") and law.around])
def test_bounded_candidates_are_finest_around_their_guess(law):
    near, unguided = (
        np.mean(np.abs(candidates.edges - law.around) < 0.1)
        for candidates in (Candidates.quantiles(law, 1000), Candidates.spread(law.kind, 1000))
    )
    assert near > 1.5 * unguided


def test_bounded_spreads_keep_their_bounds():
    assert 1.0 in Candidates.spread("mass", 100).edges
    assert 1.0 in Candidates.spread("penalised", 100).edges
    ranks = Candidates.spread("rank", 100).edges
    assert (ranks == ranks.round()).all()
    assert ranks[:4].tolist() == [1, 2, 3, 4]
    signed = Candidates.spread("signed", 101, unit=3.0).edges
    np.testing.assert_array_equal(signed, -signed[::-1])


def test_the_published_bins_are_those_that_their_number_is_chosen_for():
    """e_j = j/m with +inf for e_m = 1, as in `optimal_bins` and Algorithm 5; `unit(m)` has other edges."""
    scores = np.random.default_rng(2).random(500)
    for m in (2, 212, 1000):
        candidates = Candidates.published(m)
        assert candidates.size == m
        np.testing.assert_allclose(candidates.edges, np.arange(1, m) / m, atol=1e-12)
        edges = np.arange(1, m + 1) / m
        counts = np.diff(np.searchsorted(np.sort(scores), edges, side="right"), prepend=0)
        assert counts.tolist() == np.bincount(np.searchsorted(candidates.edges, scores), minlength=m).tolist()
        assert candidates != Candidates.unit(m)
