"""One score per record: calibration, sets and tensors agree bit for bit, and with a loop over the formula."""

import math

import numpy as np
import pytest

import confide
from confide.scores.classification import set_mask, tempered
from confide.scores.ranked import magic
from tests.any_row_sums import any_row_sums  # noqa: F401 - a fixture
from tests.builders import grid
from tests.refused import numbers, refused

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")

SCORES = [
    "lac",
    "aps_deterministic",
    "raps_deterministic(penalty=0.01,k_reg=2)",
    "saps_deterministic(penalty=0.1)",
    "margin",
    "top_k",
    "aps",
    "raps(penalty=0.3,k_reg=1)",
    "saps(penalty=0.1)",
    "lac(temperature=2)",
    "raps(penalty=0.3,k_reg=1,temperature=0.5)",
]


def formula(row, y, name, u):
    """The definition of each score, in plain Python."""
    family = confide.scores.kinds.score_kind(name)
    if family.temperature is not None:
        row, name = tempered(np.array([row]), family.temperature)[0], family.at_one.name
    p = [float(v) for v in row]
    penalty, k_reg = family.parameters.get("penalty", 0.0), family.parameters.get("k_reg", 0.0)
    rank = sum(v >= p[y] for v in p)
    if name == "lac":
        return 1.0 - p[y]
    if name == "top_k":
        return float(rank)
    if name == "margin":
        return max(v for k, v in enumerate(p) if k != y) - p[y]
    if name.startswith("saps"):
        return u * max(p) if rank == 1 else max(p) + ((rank - 2.0) + u) * penalty
    c = magic(len(p))
    above = math.fsum((v + c) - c for v in p if v > p[y])
    group = math.fsum((v + c) - c for v in p if v == p[y])
    return (above + u * group) + max(rank - k_reg, 0.0) * penalty


def tables():
    rng = np.random.default_rng(1)
    soft = rng.dirichlet(np.ones(150) / 10, 30)
    yield "many classes, float64", soft
    yield "many classes, float32", soft.astype(np.float32)
    yield "float16", rng.dirichlet(np.ones(7), 40).astype(np.float16)
    yield "ties", rng.integers(0, 4, (40, 6)) / 8
    yield "hard", np.eye(5)[rng.integers(0, 5, 20)]
    yield "flat", np.full((9, 80), 1 / 80)
    yield "saturated", np.where(np.eye(3, dtype=bool)[rng.integers(0, 3, 9)], np.float32(1), np.float32(1e-30))
    yield "rows that sum to seven", rng.random((12, 14))
    yield "one row", rng.dirichlet(np.ones(70), 1)
    yield "fewer rows than classes", rng.dirichlet(np.ones(70), 5)
    yield "two classes", rng.dirichlet(np.ones(2), 30)
    yield "integers", np.eye(4, dtype=np.int64)
    yield "negative zero", np.array([[-0.0, 1.0], [0.5, 0.5]])
    yield "columns first", np.asfortranarray(soft[:, :9])


@pytest.mark.parametrize(("score", "table"), grid(SCORES, list(dict(tables()))))
def test_scores_and_sets_agree_bit_for_bit(score, table):
    p = dict(tables())[table]
    rng = np.random.default_rng(2)
    u = rng.random(len(p)) if confide.scores.score_kind(score).randomised else None
    before = p.copy()
    whole = confide.all_scores(p, score, u=u)
    wanted = [
        [formula(row, y, score, 1.0 if u is None else u[i]) for y in range(p.shape[1])] for i, row in enumerate(p)
    ]
    np.testing.assert_array_equal(whole, np.array(wanted))
    for y in rng.integers(0, p.shape[1], (3, len(p))):
        np.testing.assert_array_equal(confide.class_score(p, y, score, u=u), whole[np.arange(len(p)), y])
    values = np.unique(whole)
    some = rng.choice(values, min(40, len(values)), replace=False)
    for threshold in [*some, *np.nextafter(some, np.inf), *np.nextafter(some, -np.inf), -2.0, 0.0, 1.0, np.inf]:
        np.testing.assert_array_equal(set_mask(p, score, threshold, u=u), whole <= threshold)
    each_row, each_class = rng.choice(values, len(p)), rng.choice(values, p.shape[1])
    np.testing.assert_array_equal(set_mask(p, score, each_row, u=u), whole <= each_row[:, None])
    np.testing.assert_array_equal(set_mask(p, score, each_class, u=u, per_class=True), whole <= each_class)
    np.testing.assert_array_equal(p, before)


@pytest.mark.slow
@pytest.mark.parametrize("score", [*SCORES[5:8], *SCORES[:5], *SCORES[8:]])
def test_blocks_and_threads_do_not_change_results(score):
    """A table large enough for several threads and blocks, against its own rows in another order."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(400) / 20, 4000).astype(np.float32)
    u = rng.random(len(p)) if confide.scores.score_kind(score).randomised else None
    y, order = rng.integers(0, 400, len(p)), rng.permutation(len(p))
    scores = confide.class_score(p, y, score, u=u)
    shuffled = None if u is None else u[order]
    np.testing.assert_array_equal(confide.class_score(p[order], y[order], score, u=shuffled), scores[order])
    threshold = np.quantile(scores, 0.7)
    mask = set_mask(p, score, threshold, u=u)
    np.testing.assert_array_equal(mask[np.arange(len(p)), y], scores <= threshold)
    np.testing.assert_array_equal(
        set_mask(p[order[:50]], score, threshold, u=None if u is None else u[order[:50]]), mask[order[:50]]
    )
    out = np.empty_like(mask)
    assert set_mask(p, score, threshold, u=u, out=out) is out
    np.testing.assert_array_equal(out, mask)


def test_randomisation_belongs_to_the_record():
    p = [[0.5, 0.3, 0.2]] * 3
    with refused(confide.InputError, "u"):
        confide.class_score(p, [0, 1, 2], "aps_deterministic", u=[0.1, 0.2, 0.3])
    with refused(confide.InputError, "u") as e:
        confide.aps_score(p, [0, 1, 2], u=[0.1, 0.2, 1.5])
    assert numbers(e) == [1, 2]
    drawn = confide.aps_score(p, [0, 1, 2], u=confide.ExperimentalUniforms(0))
    np.testing.assert_array_equal(drawn, confide.aps_score(p, [0, 1, 2], u=np.random.default_rng(0).random(3)))


@pytest.mark.slow
def test_names_carry_their_parameters():
    name = confide.score_name("raps", deterministic=True, penalty=0.01, k_reg=5)
    calibration = confide.calibrate(np.linspace(0, 1, 3000), 0.1, 2.0, score=name)
    again = confide.Calibration.from_json(calibration.to_json())
    p = np.random.default_rng(0).dirichlet(np.ones(20), 50)
    expected = confide.all_scores(p, "raps_deterministic(k_reg=5, penalty=1e-2)") <= calibration.threshold
    np.testing.assert_array_equal(confide.predict_set(p, again).mask, expected)
    for wrong in (
        "raps_deterministic",
        "raps_deterministic(penalty=0.1)",
        "raps_deterministic(penalty=0.1,k_reg=2.5)",
        "lac(x=1)",
        "raps_deterministic(penalty=-1,k_reg=1)",
    ):
        with refused(confide.InputError, "score"):
            confide.scores.kinds.score_kind(wrong)


@pytest.mark.parametrize("score", ["absolute_residual", "gamma", "normalised_residual", "cqr"])
def test_intervals_are_the_sets_of_their_scores(score):
    """Ends contain every target whose score is at most the threshold, and no target beyond two floats more."""
    rng = np.random.default_rng(4)
    n = 400
    f = np.exp(rng.normal(size=n) * 3)
    pairs = np.column_stack([f - rng.random(n), f + rng.random(n)])
    difficulty = np.exp(rng.normal(size=n)) if score == "normalised_residual" else None
    prediction = pairs if score == "cqr" else f
    for threshold in (0.0, 0.3, 7.0, -0.1, np.inf):
        lower, upper = confide.scores.regression.interval_ends(prediction, score, threshold, difficulty=difficulty)
        for side, outward in ((lower, -np.inf), (upper, np.inf)):
            y = np.where(np.isfinite(side), side, 0.0)
            for _ in range(4):
                y = np.nextafter(y, outward)
            with np.errstate(invalid="ignore"):
                inside = confide.interval_score(prediction, y, score, difficulty=difficulty) <= threshold
            assert not np.any(inside & ~((lower <= y) & (y <= upper)))
        if 0 < threshold < np.inf:
            y = rng.uniform(lower, upper)
            score_inside = confide.interval_score(prediction, y, score, difficulty=difficulty)
            assert (score_inside <= threshold * (1 + 1e-9) + 1e-9).all()


@pytest.mark.parametrize("score", SCORES)
def test_sets_of_tensors_equal_those_of_numpy(score):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    pytest.importorskip("array_api_compat", reason="needs the extra torch")
    from confide.array_api import predict_mask, true_scores
    from tests.calibrations import calibration_at

    rng = np.random.default_rng(5)
    for what, p in tables():
        if p.dtype.kind != "f" or what == "columns first":
            continue
        u = rng.random(len(p)) if confide.scores.score_kind(score).randomised else None
        y = rng.integers(0, p.shape[1], len(p))
        ours = confide.class_score(p, y, score, u=u)
        share = None if u is None else torch.from_numpy(u)
        tensor = torch.from_numpy(p.copy())
        theirs = true_scores(tensor, torch.from_numpy(y), score, u=share)
        np.testing.assert_array_equal(theirs.numpy(), ours)
        for threshold in np.quantile(ours, [0.3, 0.6, 0.9]):
            mask = predict_mask(tensor, calibration_at(float(threshold), score=score), u=share)
            np.testing.assert_array_equal(mask.numpy(), set_mask(p, score, threshold, u=u), err_msg=what)
