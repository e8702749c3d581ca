"""The fingerprint of a model: kept in every release, and compared with the model that is used."""

import hashlib
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest

import confide
from confide import ModelFingerprint, tables
from confide.core import Document, calibrate_losses
from confide.core.fingerprint import DECIMALS
from tests.refused import Refused, refused

RNG = np.random.default_rng(0)
PROBE = RNG.dirichlet([1, 1, 1], 60)
MODEL, OTHER = ModelFingerprint.of(PROBE), ModelFingerprint.of(RNG.permuted(PROBE, axis=1))
SCORES, P = RNG.beta(2, 5, 3000), RNG.dirichlet([2, 1], 3000)
Y = (P[:, 1] > RNG.random(3000)).astype(int)
OPTIONS = {"fingerprint": MODEL}
REMINDED = "was not compared"


# --- outputs


def test_outputs_are_rounded_as_stated():
    """Single precision is the same model, half precision needs fewer decimals; order and shape matter."""
    assert ModelFingerprint.of(PROBE.astype(np.float32)) == MODEL == ModelFingerprint.of(PROBE.tolist())
    coarse = np.array([[0.25, 0.5], [-0.004, 1.0]])
    assert ModelFingerprint.of(coarse + 0.0009, 2) == ModelFingerprint.of(coarse, 2)
    assert ModelFingerprint.of(coarse + 0.0009, 4) != ModelFingerprint.of(coarse, 4)
    assert ModelFingerprint.of(coarse, 2) != ModelFingerprint.of(coarse, 3)
    assert ModelFingerprint.of([0.0, 1.0]) == ModelFingerprint.of([-1e-9, 1.0])
    assert ModelFingerprint.of([1234.0], -2) == ModelFingerprint.of([1180.0], -2)
    for other in (
        OTHER,
        ModelFingerprint.of(PROBE.T),
        ModelFingerprint.of(PROBE[:-1]),
        ModelFingerprint.of(PROBE[::-1]),
    ):
        assert other != MODEL


def test_the_hash_is_the_same_on_every_machine():
    text = b"(2,) 3" + np.array([0.125, 1.0]).astype("<f8").tobytes()
    assert ModelFingerprint.of([0.1251, 1.0]).sha256 == hashlib.sha256(text).hexdigest()


# --- errors

VALID = {"outputs": PROBE, "decimals": DECIMALS}
INPUT, TYPE = confide.errors.InputError, confide.errors.InputTypeError
BAD = [
    ("outputs", INPUT, []), ("outputs", INPUT, [np.nan, 0.1]), ("outputs", INPUT, [np.inf, 0.1]),
    ("outputs", TYPE, ["cat"] * 10), ("outputs", TYPE, None),
    ("decimals", INPUT, 16), ("decimals", INPUT, -16), ("decimals", TYPE, 2.0), ("decimals", TYPE, True),
]  # fmt: skip


@pytest.mark.parametrize("row", [Refused(ModelFingerprint.of, VALID, {name: value}, name, kind=kind)
                                 for name, kind, value in BAD], ids=str)  # fmt: skip
def test_unusable_outputs(row):
    row.check()


def test_fields_are_validated():
    for change in ({"sha256": "0x"}, {"sha256": "G" * 64}, {"decimals": 99}):
        with refused(confide.errors.InputError, next(iter(change))):
            replace(MODEL, **change)


@pytest.mark.slow
def test_arrays_of_outputs_are_no_fingerprint():
    """So that outputs of calibration records are not passed by mistake."""
    for one in (PROBE, "model.onnx", 3):
        with refused(confide.errors.InputTypeError, "fingerprint"):
            confide.calibrate(SCORES, 0.1, 1.0, fingerprint=one)
        with refused(confide.errors.InputTypeError, "fingerprint"):
            RELEASES["threshold"]().for_model(one)
    with refused(confide.errors.InputTypeError, "fingerprint"):
        RELEASES["threshold"]().for_model(None)


def test_files(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"model")
    stated = ModelFingerprint.of_file(path)
    assert stated == ModelFingerprint.of_file(str(path))
    assert stated.decimals is None
    path.write_bytes(b"retrained")
    for other in (ModelFingerprint.of_file(path), MODEL):
        assert stated != other
    with refused(confide.errors.InputError, "fingerprint"):
        ModelFingerprint.of_file(tmp_path / "missing.onnx")


# --- releases

TRUE, LOSSES = RNG.random(P.shape) < P, SCORES.reshape(-1, 1)
RELEASES = {
    "threshold": lambda: confide.calibrate(SCORES, 0.1, 1.0, score="lac", **OPTIONS),
    "interval": lambda: confide.calibrate(SCORES, 0.1, 1.0, score="absolute_residual", unit=1.0, **OPTIONS),
    "levels": lambda: confide.calibrate(SCORES, [0.1, 0.2], 1.0, score="lac", **OPTIONS),
    "groups": lambda: confide.calibrate(SCORES, 0.1, 1.0, groups=Y, names=[0, 1], score="lac", **OPTIONS),
    "sides": lambda: confide.calibrate_sides(np.tile([0.2, 0.4], (3000, 1)), SCORES, 0.1, 1.0, unit=1.0, **OPTIONS),
    "labels": lambda: confide.calibrate_false_negatives(P, TRUE, 0.1, 1.0, **OPTIONS),
    "masks": lambda: confide.calibrate_masks(((p.reshape(2, 1), t.reshape(2, 1)) for p, t in zip(P, TRUE, strict=True)),
                                             0.2, 1.0, **OPTIONS),
    "losses": lambda: calibrate_losses(LOSSES, confide.Candidates.of([0.5]), 0.9, 1.0, loss="own", **OPTIONS),
    "histogram": lambda: confide.calibrate_histogram(
        confide.ScoreHistogram.from_scores(SCORES, confide.Candidates.unit(100)), 0.1, 1.0, **OPTIONS
    ),
    "table": lambda: tables.calibrate_table({"s": SCORES}, tables.ScoreColumn("s", "lac"), 0.1, 1.0, **OPTIONS),
}  # fmt: skip


def read(release):
    return Document.from_json(release.to_json())


@pytest.mark.slow(unless="levels")
@pytest.mark.parametrize("name", RELEASES)
def test_every_release_keeps_it(name):
    release = RELEASES[name]()
    assert release.fingerprint == MODEL
    assert read(release) == pickle.loads(pickle.dumps(release)) == release  # noqa: S301
    assert str(MODEL) in str(release) or release.by is not None
    for one in (release, read(release)):
        assert one.for_model(MODEL) is one
        with refused(confide.errors.InputError, "fingerprint") as caught:
            one.for_model(OTHER)
        assert "Recalibrate" in caught.value.remedy


def test_a_release_without_one_is_written_as_before_and_cannot_be_compared():
    release = confide.calibrate(SCORES, 0.1, 1.0, score="lac")
    assert "fingerprint" not in release.to_json()
    for one in (release, read(release)):
        with refused(confide.errors.InputError, "fingerprint"):
            one.for_model(MODEL)


def test_a_ledger_returns_it_and_it_is_no_part_of_the_request(tmp_path):
    account = {"ledger": confide.Ledger(tmp_path / "budget.db"), "dataset": "clinic"}
    first = confide.calibrate(SCORES, 0.1, 1.0, score="lac", **OPTIONS, **account)
    with pytest.warns(confide.errors.EarlierReleaseWarning):
        again = confide.calibrate(SCORES, 0.1, 1.0, score="lac", **OPTIONS, **account)
    assert again == first
    with pytest.warns(confide.errors.EarlierReleaseWarning):
        other = confide.calibrate(SCORES, 0.1, 1.0, score="lac", **OPTIONS | {"fingerprint": OTHER}, **account)
    assert (other.threshold, other.fingerprint) == (first.threshold, OTHER)


# --- fronts


def _table():
    return {"s": SCORES[:50], "p_0": P[:50, 0], "p_1": P[:50, 1], "label": Y[:50]}


def _watched(release, folder, unlabelled=None):
    what = tables.ClassColumns("p_*", classes=(0, 1)) if unlabelled else tables.ClassColumns("p_*", "label")
    batch = {name: np.repeat(values, 20) for name, values in _table().items()}
    choices = {"epsilon": 1.0, "batch": 1000, "unlabelled": unlabelled}
    return confide.watch(batch, what, release, state=folder / "state", look="1", **choices)


def _onnx(release, folder):
    onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
    from onnx import TensorProto, helper

    from confide.onnx import append

    shape = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in ("logits", "p")]
    graph = helper.make_graph([helper.make_node("Softmax", ["logits"], ["p"])], "model", shape[:1], shape[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / "model.onnx")
    return append(folder / "model.onnx", release)


def _torch(release, folder):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    from confide import torch as front

    return front.predict_set(torch.from_numpy(P), release, logits=False)


def _array_api(release, folder):
    pytest.importorskip("array_api_compat", reason="needs the extra torch")
    from confide import array_api

    return array_api.predict_mask(P, release)


CLASSES = tables.ClassColumns("p_*", "label")
FRONTS = {
    "predict_set": ("threshold", lambda one, _: confide.predict_set(P, one)),
    "predict_set of a level": ("levels", lambda one, _: confide.predict_set(P, one.at(0.1))),
    "predict_set of groups": ("groups", lambda one, _: confide.predict_set(P, one, groups=Y)),
    "predict_interval": ("interval", lambda one, _: confide.predict_interval([1.0, 2.0], one)),
    "predict_interval of sides": ("sides", lambda one, _: confide.predict_interval([[0.0, 1.0], [2.0, 3.0]], one)),
    "predict_labels": ("labels", lambda one, _: confide.predict_labels(P, one)),
    "predict_masks": ("masks", lambda one, _: confide.predict_masks(P[:1].reshape(2, 1, 1), one)),
    "predict_table": ("threshold", lambda one, to: tables.predict_table(_table(), CLASSES, one, to / "sets.csv")),
    "evaluate sets": ("threshold", lambda one, _: confide.evaluate(one, probabilities=P, labels=Y)),
    "evaluate intervals": ("interval", lambda one, _: confide.evaluate(one, predictions=P[:, 0], targets=P[:, 0])),
    "evaluate scores": ("threshold", lambda one, _: confide.evaluate(one, scores=SCORES)),
    "evaluate privately": ("threshold", lambda one, _: confide.evaluate(one, probabilities=P, labels=Y, epsilon=1.0)),
    "evaluate a table": ("threshold", lambda one, _: tables.evaluate_table(_table(), CLASSES, one)),
    "evaluate a table privately": ("threshold",
                                   lambda one, _: confide.evaluate(one, table=_table(), what=CLASSES, epsilon=1.0)),
    "watch": ("threshold", _watched),
    "watch sizes": ("threshold", lambda one, to: _watched(one, to, unlabelled=True)),
    "ONNX": ("threshold", _onnx),
    "torch": ("threshold", _torch),
    "array API": ("threshold", _array_api),
}  # fmt: skip


@pytest.mark.parametrize("name", FRONTS)
def test_every_front_reminds_once_of_a_model_that_was_not_compared(name, tmp_path):
    kind, use = FRONTS[name]
    release = RELEASES[kind]()
    for place, (one, reminders) in enumerate(((release, 0), (read(release).for_model(MODEL), 0), (read(release), 1))):
        (folder := tmp_path / str(place)).mkdir()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            use(one, folder)
        found = [warning for warning in said if REMINDED in str(warning.message)]
        assert [warning.category for warning in found] == [confide.CoverageWarning] * reminders
    (folder := tmp_path / "again").mkdir()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        use(one, folder)
    assert not any(REMINDED in str(warning.message) for warning in said)


def of_model(release, fingerprint):
    return replace(release, request=replace(release.request, fingerprint=fingerprint))


def test_an_onnx_file_is_compared_with_a_fingerprint_of_files(tmp_path):
    release = RELEASES["threshold"]()
    _onnx(release, tmp_path)
    stated = of_model(release, ModelFingerprint.of_file(tmp_path / "model.onnx"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _onnx(read(stated), tmp_path)
    with refused(confide.errors.InputError, "fingerprint"):
        _onnx(of_model(release, ModelFingerprint(sha256="0" * 64)), tmp_path)
