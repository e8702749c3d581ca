"""Risk control: missed areas and missed labels, by enumeration, and through every entry point."""

import itertools

import numpy as np
import pytest

import confide
from confide.core import MissedAreaLoss, critical_thresholds, false_negative_thresholds, true_pixels
from confide.core.masks import critical_area
from tests.calibrations import calibration_at
from tests.designs import planned, terms
from tests.exact import mechanism_law
from tests.refused import refused

ANY = -100


def of_masks(threshold, loss="missed_area", classes=None):
    """A release of masks with a given threshold."""
    return calibration_at(threshold, score=None, loss=loss, classes=classes)


def loss_of(p, truth, t, background=None, by_class=False):
    """The share of true pixels with a probability below 1 - t, by definition."""
    shares, pixels, missed = [], 0, 0
    for k in range(len(p)):
        true = np.asarray(truth[k], bool) if truth.shape == p.shape else truth == k
        if k == background or not true.any():
            continue
        away = 1 - p[k][true].astype(np.float64) > t
        shares.append(away.mean())
        pixels, missed = pixels + true.sum(), missed + away.sum()
    return (np.mean(shares) if by_class else missed / pixels) if shares else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("kind", ["numbers", "masks", "one"])
def test_the_critical_threshold_has_the_missed_area_as_its_tail(kind, by_class):
    """P(S > t) = L(t), on a fine grid of u; and S is exactly the first threshold with a loss of at most u."""
    rng = np.random.default_rng(0)
    area, grid = MissedAreaLoss(0 if kind == "numbers" else None, by_class), (np.arange(2000) + 0.5) / 2000
    for _ in range(5):
        k, where = (1 if kind == "one" else 3), (4, 3, 2)
        p = rng.integers(0, 9, (k, *where)).astype(np.float32) / 8  # with ties
        truth = rng.integers(0, 3, where) if kind == "numbers" else rng.random(p.shape) < 0.3
        own = true_pixels(p, truth, area, ANY)
        found = np.array([critical_area(own, u, by_class=by_class) for u in grid])
        for t in np.arange(9) / 8:
            loss = loss_of(p, truth, t, area.background, by_class)
            assert np.mean(found > t) == pytest.approx(loss, abs=1e-3)
            assert ((found <= t) == (loss <= grid + 1e-12)).all()


def test_images_without_area_have_no_loss_and_ignored_pixels_are_none():
    p = np.array([[[0.9, 0.2, 0.6]]])
    for truth in (np.zeros((1, 1, 3)), np.zeros((1, 3), bool), np.full((1, 3), ANY)):
        assert critical_area(true_pixels(p, truth, MissedAreaLoss(), ANY), 0.5) == 0
    (own,) = true_pixels(p, np.array([[1, ANY, 1]]), MissedAreaLoss(), ANY)
    assert own.tolist() == [0.9, 0.6]
    assert true_pixels(np.full((2, 3), 0.5), np.array([255, 0, 0], np.uint8), MissedAreaLoss(0), 255)[0].tolist() == []


def images_of(n, rng, k=1, size=6):
    """Calibrated probabilities, so that a pixel is true with its probability; images differ."""
    for _ in range(n):
        where = (size, int(rng.integers(2, size)))
        strength = rng.random()
        if k == 1:
            p = rng.random((1, *where)) ** (1 + strength)
            yield p, rng.random(p.shape) < p
        else:
            p = np.moveaxis(rng.dirichlet(np.full(k, 0.3 + strength), where), -1, 0)
            yield p, (p.cumsum(axis=0) < rng.random(where)).sum(axis=0)


@pytest.fixture(scope="module")
def released():
    return confide.calibrate_masks(images_of(1500, np.random.default_rng(0), k=3), 0.1, 2.0, background=0)


@pytest.mark.slow
def test_one_pass_one_record_per_image_and_a_complete_file(released):
    assert released.loss == "missed_area(background=0)"
    assert released.classes == 3
    assert confide.Release.from_json(released.to_json()) == released
    assert "missed_area(background=0)" in str(released)
    assert released.risk <= 0.1 + 1e-12
    found = confide.evaluation.evaluate_masks(images_of(400, np.random.default_rng(1), k=3), released)
    assert 0.03 < found.loss < 0.15
    assert 1 < found.area_ratio < 4
    assert found.classes.names == ("1", "2")
    public = confide.calibrate_masks(images_of(300, np.random.default_rng(2)), 0.2, 2.0, neighbors="replace_one")
    assert public.guarantee.n == 300  # images, not pixels


def test_masks_are_the_pixels_within_the_threshold(released):
    p = np.random.default_rng(4).random((3, 5, 4, 2)).astype(np.float32)
    mask = confide.predict_masks(p, released)
    assert (mask.shape, mask.dtype) == (p.shape, np.bool_)
    assert (mask == (1 - p.astype(np.float64) <= released.threshold)).all()
    edge = np.array([[1 - 0.25, np.nextafter(1 - 0.25, 0)]])
    assert confide.predict_masks(edge, of_masks(0.25)).tolist() == [[True, False]]
    with pytest.warns(confide.CoverageWarning):
        assert confide.predict_masks(np.zeros((1, 2)), of_masks(np.inf)).all()
    with refused(confide.errors.InputError, "probabilities"):
        confide.predict_masks(p[:2], released)
    with refused(confide.errors.InputTypeError, "calibration"):
        confide.predict_masks(p, calibration_at(0.5))


def test_evaluation_counts_by_hand():
    p = np.array([[[0.9, 0.4, 0.8, 0.3]], [[0.1, 0.6, 0.2, 0.7]]])
    truth = np.array([[0, 1, 1, ANY]])
    found = confide.evaluation.evaluate_masks([(p, truth), (p, np.zeros((1, 4), int))], of_masks(0.45, classes=2))
    # Inside are pixels 0, 2 of class 0 and 1, 3 of class 1; the last of them is ignored in the first image.
    assert found.loss == pytest.approx((1 / 3 + 2 / 4) / 2)
    assert found.area_ratio == pytest.approx((3 + 4) / (3 + 4))
    missed = {part.name: 1 - part.value for part in found.classes}
    assert missed == {"0": pytest.approx((0 + 2 / 4) / 2), "1": 0.5}
    assert confide.Evaluation.from_json(found.to_json()) == found
    alike = confide.evaluation.evaluate_masks([(p, truth)], of_masks(0.45, "missed_area(average=classes)", 2))
    assert alike.loss == pytest.approx((0 + 1 / 2) / 2)
    assert "1.00 times the true area" in str(found)


@pytest.mark.parametrize(
    ("p", "truth", "argument", "got"),
    [
        (np.full((2, 3), 0.5), np.array([0, 2, 1]), "truth", ""),
        (np.full((1, 3), 0.5), np.array([0, 2, 1]), "masks", ""),
        (np.full((2, 3), 0.5), np.zeros((4,)), "truth", "(4,)"),
        (np.full(3, 0.5), np.zeros(3), "probabilities", "(3,)"),
        (np.array([[0.5, np.nan, 2.0]]), np.zeros(3), "probabilities", "NaN or values outside"),
        (np.full((3, 3), 0.5), np.zeros(3), "images", "3 in image 1"),
    ],
)
def test_an_invalid_image_raises_with_its_position(p, truth, argument, got):
    fine = (np.full((1 if len(p) == 1 else 2, 2), 0.5), np.zeros(2))
    with refused(confide.errors.InputError, argument) as caught:
        confide.calibrate_masks([fine, (p, truth)], 0.1, 1.0)
    assert caught.value.got == got
    assert "image 1" in str(caught.value)


def test_invalid_choices_raise():
    image = (np.full((1, 2), 0.5), np.zeros(2))
    for options, kind, argument in (
        ({"background": 0}, confide.errors.InputError, "background"),
        ({"average": "area"}, confide.errors.InputError, "average"),
        ({"classes": 2}, confide.errors.InputError, "images"),
        ({"weights": [1.0]}, confide.errors.InputTypeError, "weights"),
    ):
        with refused(kind, argument):
            confide.calibrate_masks([image], 0.1, 1.0, **options)
    with refused(confide.errors.InputError, "background"):
        confide.calibrate_masks([(np.full((2, 2), 0.5), np.zeros(2))], 0.1, 1.0, background=-1)
    with refused(confide.errors.InputError, "classes"):
        confide.calibrate_masks([], 0.1, 1.0)
    with refused(confide.errors.InputError, "loader"):
        confide.calibrate_masks([], 0.1, 1.0, classes=1, neighbors="replace_one")
    with refused(confide.errors.InputError, "images"):
        confide.calibrate_masks([np.zeros((3, 2))], 0.1, 1.0)


@pytest.fixture
def torch():
    pytest.importorskip("array_api_compat", reason="needs the extra torch")
    return pytest.importorskip("torch", reason="needs the extra torch: pip install 'confide[torch]'")


@pytest.mark.slow(unless=("one", "softmax"))
@pytest.mark.parametrize("kind", ["softmax", "sigmoid", "one"])
def test_torch_masks_are_those_of_numpy_bit_for_bit(torch, kind):
    from confide import torch as front

    torch.manual_seed(0)
    k = 1 if kind == "one" else 3
    logits = 2 * torch.randn(40, k, 5, 4)
    p = torch.softmax(logits, 1).clamp(max=1.0) if kind == "softmax" else torch.sigmoid(logits)
    truth = torch.distributions.Categorical(probs=p.movedim(1, -1)).sample() if kind == "softmax" else p > 0.4
    options = {"background": 0 if kind == "softmax" else None, "average": "classes"}
    how = {"sigmoid": kind == "sigmoid"}
    unit = {"candidates": confide.Candidates.unit(50), "mechanism": "none", "neighbors": "replace_one"}
    mine = front.calibrate_masks(
        lambda batch: {"out": batch},
        [(logits[:30], truth[:30].int()), {"labels": truth[30:], "batch": logits[30:]}],
        0.2, u=confide.ExperimentalUniforms(0), progress=False, **options, **how, **unit,
    )  # fmt: skip
    pairs = list(zip(p.numpy(), truth.numpy(), strict=True))
    ours = confide.calibrate_masks(pairs, 0.2, u=confide.ExperimentalUniforms(0), **options, **unit)
    assert mine == ours
    masks = front.predict_masks(logits, mine, **how)
    assert masks.dtype == torch.bool
    assert (masks.numpy() == [confide.predict_masks(image, ours) for image in p.numpy()]).all()
    loader = [(logits[:7], truth[:7]), (logits[7:], truth[7:])]
    found = front.evaluate_masks(torch.nn.Identity(), loader, mine, progress=False, **how)
    assert found == confide.evaluation.evaluate_masks(pairs, ours)


# --- the reduction to critical thresholds, for losses and false negatives


@pytest.mark.long
def test_risk_is_controlled_for_every_data_set():
    """All multisets of five records with losses 1, 1/2, 0 over four candidates, and all choices of u: Theorem R1.

    The expected loss is computed from the losses themselves, not from the critical thresholds.
    """
    m, points = 4, 5
    plan = planned(terms("0.4", m, 3.0), 4)
    # A record is (a, b): its loss is 1 before candidate a, 1/2 from a to before b, and 0 from b on.
    records = list(itertools.combinations_with_replacement(range(m), 2))
    laws = {}

    def law(h):
        if h not in laws:
            laws[h] = mechanism_law(plan.mechanism, h)
        return laws[h]

    worst = 0.0
    for data in itertools.combinations_with_replacement(records, points):
        risk = 0.0
        for coin in itertools.product((0, 1), repeat=points):  # u above or below 1/2: the critical candidate is a or b
            critical = [r[c] for r, c in zip(data, coin, strict=True)]
            counts = np.bincount(critical, minlength=m)
            for i, (a, b) in enumerate(data):
                rest = counts.copy()
                rest[critical[i]] -= 1
                below = np.concatenate([[0.0], np.cumsum(law(tuple(int(v) for v in rest)))])
                risk += (below[a] + below[b]) / 2  # expected loss: 1 below a, 1/2 between
        worst = max(worst, risk / points / 2**points)
    assert 0.2 < worst <= 0.4 + 1e-12


@pytest.mark.slow
def test_critical_thresholds_have_the_loss_as_their_tail():
    """P(S > t) = L(t): exactly, on a fine grid of u."""
    rng = np.random.default_rng(0)
    candidates = confide.Candidates.unit(21)
    u = (np.arange(10_000) + 0.5) / 10_000
    for _ in range(10):
        p, truth = rng.random((1, 7)), rng.random((1, 7)) < 0.5
        scores = false_negative_thresholds(np.tile(p, (len(u), 1)), np.tile(truth, (len(u), 1)), u=u)
        losses = [[np.sum(truth & (1 - p > t)) / max(truth.sum(), 1) for t in candidates.edges]]
        general = critical_thresholds(np.tile(losses, (len(u), 1)), candidates, u=u)
        for t, loss in zip(candidates.edges, losses[0], strict=True):
            assert np.mean(scores > t) == pytest.approx(loss, abs=2e-4)
            assert np.mean(general > t) == pytest.approx(loss, abs=2e-4)


def test_seeded_numbers_would_break_the_loss():
    """Data that agree with the seed: without the first record every other record has its neighbour's number.

    Records whose number is at least 1/2 have two true labels, and the number selects the likelier one. If numbers
    belong to the records, the privacy loss is at most epsilon; by position it is 39.
    """
    n, epsilon, u = 400, 1.0, np.random.default_rng(0).random(400)
    p = np.tile([0.9, 0.1], (n, 1))
    truth = np.column_stack([np.ones(n), u >= 0.5]).astype(bool)
    candidates = confide.Candidates.of([0.05, 0.2, 0.5, 0.95])
    mechanism = confide.plan(0.1, epsilon, n, candidates=candidates.size).mechanism

    def law(first, numbers):
        scores = false_negative_thresholds(p[first:], truth[first:], u=numbers)
        return np.log(mechanism_law(mechanism, confide.ScoreHistogram.from_scores(scores, candidates).counts))

    tied = np.abs(law(0, u) - law(1, u[1:])).max()
    seeded = np.abs(law(0, confide.ExperimentalUniforms(0)) - law(1, confide.ExperimentalUniforms(0))).max()
    assert tied <= epsilon * (1 + 1e-9)
    assert seeded > 10


def test_invalid_losses_raise():
    candidates = confide.Candidates.unit(4)
    falling = np.array([[1, 1, 0], [1, 0, 0]], dtype=np.uint8)  # differences of these would wrap
    assert critical_thresholds(falling, candidates, u=np.full(2, 0.5)).tolist() == candidates.values[[2, 1]].tolist()
    for losses in ([[0.5, 0.6, 0.1]], [[0.5, 0.4, 0.1], [2.0, 0.1, 0.0]], [[np.nan, 0.4, 0.1]], [[0.5, 0.4]]):
        with refused(confide.errors.InputError, "losses"):
            critical_thresholds(losses, candidates, u=np.full(len(losses), 0.5))
    with refused(confide.errors.InputError, "truth"):
        confide.calibrate_false_negatives([[0.5]], [[2]], 0.1, 1.0, u=[0.5])
    with refused(confide.errors.InputTypeError, "calibration"):
        confide.predict_labels([[0.5]], None)
