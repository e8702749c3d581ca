"""Scores that carry their name and classes, what a name stands for, and scores at a public temperature."""

import copy
import pickle

import mpmath
import numpy as np
import pytest

import confide
from confide.arrays import tempered
from confide.errors import InputError
from confide.scores import class_score, score_kind
from tests.refused import numbers, refused

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")

P = np.random.default_rng(0).dirichlet(np.ones(3), 400)
Y = np.random.default_rng(1).integers(0, 3, 400)
MADE = {
    "lac": lambda: confide.lac_score(P, Y),
    "aps_deterministic": lambda: confide.aps_score(P, Y, randomised=False),
    "raps_deterministic(penalty=0.01,k_reg=2)": lambda: confide.raps_score(P, Y, 0.01, 2, randomised=False),
    "saps_deterministic(penalty=0.1)": lambda: confide.saps_score(P, Y, 0.1, randomised=False),
    "margin": lambda: confide.margin_score(P, Y),
    "top_k": lambda: confide.top_k_score(P, Y),
    "aps": lambda: confide.class_score(P, Y, "aps", u=np.full(400, 0.5)),
    "absolute_residual": lambda: confide.absolute_residual_score(P[:, 0], P[:, 1]),
    "gamma": lambda: confide.gamma_score(P[:, 0] + 1, P[:, 1]),
    "normalised_residual": lambda: confide.normalised_residual_score(P[:, 0], P[:, 1], P[:, 2] + 1),
    "cqr": lambda: confide.cqr_score(P[:, :2], P[:, 2]),
}


@pytest.mark.slow
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


def test_contradictory_names_raise():
    scores = confide.aps_score(P, Y, randomised=False)
    for calibrate in (confide.calibrate, lambda *a, **o: confide.calibrate(a[0], [0.2, 0.1], a[2], **o)):
        with refused(confide.errors.InputError, "score"):
            calibrate(scores, 0.1, 1.0, score="lac")
        with refused(confide.errors.InputError, "classes"):
            calibrate(scores, 0.1, 1.0, classes=["a", "b"])
    named = confide.lac_score(P, np.array(["a", "b", "c"])[Y], classes=["a", "b", "c"])
    with refused(confide.errors.InputError, "classes"):
        confide.calibrate(named, 0.1, 1.0, classes=["a", "b", "x"])


# `aps`, `raps` and `saps` are randomised, as in MAPIE and TorchCP.

TIED, OWN = np.array([[0.5, 0.25, 0.125, 0.125]]), [1]
VARIANTS = {
    "aps": (confide.aps_score, {}, 0.5 + 0.5 * 0.25, 0.75),
    "raps(penalty=0.5,k_reg=1)": (confide.raps_score, {"penalty": 0.5, "k_reg": 1}, 1.125, 1.25),
    "saps(penalty=0.25)": (confide.saps_score, {"penalty": 0.25}, 0.625, 0.75),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_plain_name_is_the_randomised_score(name):
    """Ten drawn scores are equal with a probability of 2^-477, and at most the deterministic one."""
    compute, given, half, whole = VARIANTS[name]
    deterministic = name.replace("(", "_deterministic(") if "(" in name else f"{name}_deterministic"
    assert compute(TIED, OWN, u=[0.5], **given).tolist() == [half] == class_score(TIED, OWN, name, u=[0.5]).tolist()
    drawn = compute(np.repeat(TIED, 10, axis=0), OWN * 10, **given)
    assert drawn.score == name
    assert len(set(drawn.tolist())) > 1
    assert (drawn <= whole).all()
    plain = compute(TIED, OWN, randomised=False, **given)
    assert (plain.tolist(), plain.score) == ([whole], deterministic)
    assert class_score(TIED, OWN, deterministic).tolist() == [whole]
    assert (score_kind(name).randomised, score_kind(deterministic).randomised) == (True, False)
    with refused(InputError, "u"):
        compute(TIED, OWN, randomised=False, u=[0.5], **given)


def test_randomisation_belongs_to_the_record():
    for name, u, said in (("aps_deterministic", [0.1, 0.2, 0.3], None), ("aps", [0.1, 0.2, 1.5], [1, 2])):
        with refused(confide.errors.InputError, "u") as e:
            confide.class_score([[0.5, 0.3, 0.2]] * 3, [0, 1, 2], name, u=u)
        assert said in (None, numbers(e))


@pytest.mark.parametrize("temperature", [0.01, 0.5, 1.0, 2.5, 100.0])
def test_probabilities_at_a_temperature_are_powers_rescaled(temperature):
    rows = np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0], [1e-300, 0.5, 0.5], [0.25, 0.25, 0.5]])
    with mpmath.workdps(60):
        for row, found in zip(rows, tempered(rows, temperature), strict=True):
            powers = [mpmath.mpf(float(p)) ** (1 / mpmath.mpf(temperature)) for p in row]
            expected = [float(power / mpmath.fsum(powers)) for power in powers]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_parameters_may_be_written_in_another_way():
    written = (
        confide.score_name("raps", deterministic=True, penalty=0.01, k_reg=5),
        "raps_deterministic(k_reg=5, penalty=1e-2)",
    )
    np.testing.assert_array_equal(*(confide.all_scores(P, name) for name in written))
    with refused(InputError, "score"):
        confide.score_name("laps")


@pytest.mark.parametrize(
    "name",
    ["raps_deterministic", "raps_deterministic(penalty=0.1)", "raps_deterministic(penalty=0.1,k_reg=2.5)", "lac(x=1)",
     "raps_deterministic(penalty=-1,k_reg=1)", "top_k(temperature=2)", "lac(temperature=0)", "lac(temperature=101)",
     "lac(temperature=2,temperature=2)", "lac()", "lac(temperature=inf)", "absolute_residual(temperature=2)",
     "raps_deterministic(temperature=2)", "lac(temp=2)", "", "x" * 201, "two\nlines"],
)  # fmt: skip
def test_other_names_raise(name):
    with refused(InputError, "score"):
        score_kind(name)
