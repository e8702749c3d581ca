"""One score per record: calibration, sets and tensors agree bit for bit, and with a loop over the formula."""

import math

import numpy as np
import pytest

import confide
from confide.scores.classification import set_mask
from confide.scores.kinds import tempered
from confide.scores.ranked import magic
from tests.any_row_sums import any_row_sums  # noqa: F401 - a fixture
from tests.builders import grid
from tests.refused import numbers, refused
from tests.scores.test_contract import tables

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
    name = family.family
    if family.temperature is not None:
        row = tempered(np.array([row]), family.temperature)[0]
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


@pytest.mark.parametrize(("score", "table"), grid(SCORES, list(dict(tables()))))
def test_scores_are_their_formulas(score, table):
    p = dict(tables())[table]
    u = np.random.default_rng(2).random(len(p)) if confide.scores.score_kind(score).randomised else None
    wanted = [
        [formula(row, y, score, 1.0 if u is None else u[i]) for y in range(p.shape[1])] for i, row in enumerate(p)
    ]
    np.testing.assert_array_equal(confide.all_scores(p, score, u=u), np.array(wanted))


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


@pytest.mark.parametrize("score", SCORES)
def test_sets_of_tensors_equal_those_of_numpy(score):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    pytest.importorskip("array_api_compat", reason="needs the extra torch")
    from confide.array_api import predict_mask, true_scores
    from tests.calibrations import calibration_at

    rng = np.random.default_rng(5)
    for what, p in tables():
        if p.dtype.kind != "f" or what in ("columns first", "big-endian", "long double"):
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
