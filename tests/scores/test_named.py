"""Scores that carry their name and classes."""

import copy
import pickle

import numpy as np
import pytest

import confide
from confide.scores import NamedScores, name_of_scores
from tests.refused import refused

P = np.random.default_rng(0).dirichlet(np.ones(3), 400)
Y = np.random.default_rng(1).integers(0, 3, 400)
MADE = {
    "lac": lambda: confide.lac_score(P, Y),
    "aps": lambda: confide.aps_score(P, Y),
    "raps(penalty=0.01,k_reg=2)": lambda: confide.raps_score(P, Y, 0.01, 2),
    "saps(penalty=0.1)": lambda: confide.saps_score(P, Y, 0.1),
    "margin": lambda: confide.margin_score(P, Y),
    "top_k": lambda: confide.top_k_score(P, Y),
    "aps_randomised": lambda: confide.class_score(P, Y, "aps_randomised", u=np.full(400, 0.5)),
    "absolute_residual": lambda: confide.absolute_residual_score(P[:, 0], P[:, 1]),
    "gamma": lambda: confide.gamma_score(P[:, 0] + 1, P[:, 1]),
    "normalised_residual": lambda: confide.normalised_residual_score(P[:, 0], P[:, 1], P[:, 2] + 1),
    "cqr": lambda: confide.cqr_score(P[:, :2], P[:, 2]),
}


@pytest.mark.parametrize("name", MADE)
def test_every_score_function_names_its_scores(name):
    """Therefore the shortest call is correct: a release of these scores has a name and classes."""
    scores = MADE[name]()
    assert (scores.score, scores.classes) == (name, None if "residual" in name or name in ("gamma", "cqr") else 3)
    released = confide.calibrate(scores, 0.2, 5.0)
    assert (released.score, released.classes) == (name, scores.classes)
    assert released.recipe == confide.calibrate(np.asarray(scores), 0.2, 5.0, score=name).recipe


def test_slices_and_copies_are_named_and_arithmetic_is_not():
    scores = confide.lac_score(P, Y, classes=[0, 1, 2])
    pickled = pickle.loads(pickle.dumps(scores))  # noqa: S301
    kept = [scores[:5], scores[scores > 0.5], scores.copy(), copy.deepcopy(scores), pickled]
    for one in [*kept, np.sort(scores), scores.astype(np.float32), scores[[1, 2]]]:
        assert (one.score, one.classes) == ("lac", 3)
    np.testing.assert_array_equal(kept[-1], scores)
    other = scores.copy()
    other *= 2
    for one in (
        1 - scores,
        scores * 2,
        np.sqrt(scores),
        scores < 0.5,
        np.maximum(scores, 0.1),
        np.asarray(scores),
        other,
    ):
        assert type(one) is np.ndarray
    assert isinstance(scores.sum(), float)
    assert np.add(scores, 1, out=scores.copy()).max() == scores.max() + 1


def test_they_print_like_arrays():
    scores = confide.lac_score([[0.75, 0.25]], [0])
    assert (repr(scores), str(scores), repr(scores[0])) == ("array([0.25])", "[0.25]", "np.float64(0.25)")


def test_contradictory_names_raise():
    scores = confide.aps_score(P, Y)
    for calibrate in (confide.calibrate, lambda *a, **o: confide.calibrate_levels(a[0], [0.2, 0.1], a[2], **o)):
        with refused(confide.InputError, "score"):
            calibrate(scores, 0.1, 1.0, score="lac")
        with refused(confide.InputError, "classes"):
            calibrate(scores, 0.1, 1.0, classes=["a", "b"])
    named = confide.lac_score(P, np.array(["a", "b", "c"])[Y], classes=["a", "b", "c"])
    with refused(confide.InputError, "classes"):
        confide.calibrate(named, 0.1, 1.0, classes=["a", "b", "x"])


def test_the_same_score_in_other_digits_is_accepted():
    scores = confide.raps_score(P, Y, 0.01, 2)
    assert name_of_scores(scores, "raps(penalty=0.010,k_reg=2)", None)[0] == "raps(penalty=0.010,k_reg=2)"


@pytest.mark.parametrize("calibrate", ["groups", "classes", "levels"])
def test_releases_of_several_thresholds_record_the_score_too(calibrate):
    names = ["a", "b", "c"]
    scores, y = confide.lac_score(P, np.array(names)[Y], classes=names), np.array(names)[Y]
    made = {
        "groups": lambda: confide.calibrate_groups(scores, y, names, 0.2, 5.0),
        "classes": lambda: confide.calibrate_groups(scores, y, names, 0.2, 5.0, by="class"),
        "levels": lambda: confide.calibrate_levels(scores, [0.3, 0.2], 5.0),
    }[calibrate]()
    parts = list(made.parts.values())
    assert {part.score for part in parts} == {"lac"}
    assert {part.classes for part in parts} == {None if calibrate == "classes" else ("a", "b", "c")}
    chosen = made[0.2] if calibrate == "levels" else made
    with refused(confide.InputError, "classes"):
        confide.predict_set(
            P[:, :2] / P[:, :2].sum(axis=1, keepdims=True),
            chosen,
            classes=["a", "b"],
            groups=y if calibrate == "groups" else None,
        )


def test_bare_numbers_have_no_name():
    assert name_of_scores([0.5], None, None) == (None, None)
    assert NamedScores.of(np.zeros(1), None).score is None
