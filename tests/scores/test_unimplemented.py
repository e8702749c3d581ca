"""A score of `FAMILIES` without an implementation raises an error everywhere; no other score is computed instead."""

from dataclasses import replace

import numpy as np
import pyarrow
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor

import confide
from confide.cli import main
from confide.cli.exit_codes import REFUSED, USAGE
from confide.errors import InputError
from confide.scores import FAMILIES, all_scores, class_score, interval_ends, interval_score, kinds
from confide.scores.classification import set_mask
from confide.tables import ClassColumns, TargetColumns, score_histogram
from confide.warehouse import CountingPlan
from tests.calibrations import calibration_at
from tests.refused import refused

P, Y = np.array([[0.7, 0.2, 0.1]] * 40), np.array([0] * 30 + [2] * 10)
TABLE = pyarrow.table({"p_a": P[:, 0], "p_b": P[:, 1], "p_c": P[:, 2], "y": Y, "f": P[:, 0], "t": P[:, 1]})
CLASSES = ClassColumns(("p_a", "p_b", "p_c"), "y", (0, 1, 2), "new_set")


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Two more families: one of sets, one of intervals, without any code."""
    rows = {"new_set": FAMILIES["aps"], "new_interval": FAMILIES["absolute_residual"]}
    monkeypatch.setattr(kinds, "FAMILIES", {**FAMILIES, **rows})
    kinds._known_kind.cache_clear()
    yield
    kinds._known_kind.cache_clear()


def _released(score):
    return replace(calibration_at(0.9, score), classes=None)


def _onnx(score, shape):
    onnx, append = pytest.importorskip("onnx"), pytest.importorskip("confide.onnx")
    kind = onnx.TensorProto.FLOAT
    ends = [onnx.helper.make_tensor_value_info(name, kind, shape) for name in ("x", "p")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["p"])], "model", ends[:1], ends[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)
    append.append(model, _released(score))


def _torch(name, *arguments, **options):
    torch, front = pytest.importorskip("torch"), pytest.importorskip("confide.torch")
    tensors = [torch.tensor(one) if isinstance(one, np.ndarray) else one for one in arguments]
    return getattr(front, name)(*tensors, **options)


def _torch_calibrate(outputs, targets, score, **options):
    torch = pytest.importorskip("torch")
    loader = [(torch.tensor(outputs), torch.tensor(targets))]
    return _torch("calibrate", torch.nn.Identity(), loader, 0.1, 1.0, score=score, progress=False, **options)


def _array_api(name, *arguments):
    pytest.importorskip("array_api_compat")
    return getattr(__import__("confide.array_api").array_api, name)(*arguments)


PLACES = {
    "class_score": lambda: class_score(P, Y, "new_set"),
    "class_score at a temperature": lambda: class_score(P, Y, "new_set(temperature=2)"),
    "class_score, deterministic": lambda: class_score(P, Y, "new_set_deterministic"),
    "all_scores": lambda: all_scores(P, "new_set"),
    "set_mask": lambda: set_mask(P, "new_set", 0.9),
    "set_mask, per class": lambda: set_mask(P, "new_set", np.array([0.1, 0.5, 0.9]), per_class=True),
    "predict_set": lambda: confide.predict_set(P, _released("new_set")),
    "interval_score": lambda: interval_score(P[:, 0], P[:, 1], "new_interval"),
    "interval_ends": lambda: interval_ends(P[:, 0], "new_interval", 0.5),
    "predict_interval": lambda: confide.predict_interval(P[:, 0], _released("new_interval")),
    "array_api.true_scores": lambda: _array_api("true_scores", P, Y, "new_set"),
    "array_api.predict_mask": lambda: _array_api("predict_mask", P, _released("new_set")),
    "torch.predict_set": lambda: _torch("predict_set", P, _released("new_set"), logits=False),
    "torch.calibrate, sets": lambda: _torch_calibrate(P, Y, "new_set", logits=False),
    "torch.calibrate, intervals": lambda: _torch_calibrate(P[:, 0], P[:, 1], "new_interval"),
    "onnx, sets": lambda: _onnx("new_set", ["n", 3]),
    "onnx, intervals": lambda: _onnx("new_interval", ["n", 1]),
    "table, sets": lambda: score_histogram(TABLE, CLASSES),
    "table, intervals": lambda: score_histogram(TABLE, TargetColumns("f", "t", "new_interval")),
    "warehouse, sets": lambda: CountingPlan.of(CLASSES, 0.1, 1.0),
    "warehouse, intervals": lambda: CountingPlan.of(TargetColumns("f", "t", "new_interval"), 0.1, 1.0),
    "page, sets": lambda: confide.reports.thresholds.rule(_released("new_set")),
    "page, intervals": lambda: confide.reports.thresholds.rule(_released("new_interval")),
    "classifier": lambda: confide.PrivateConformalClassifier(
        DummyClassifier().fit(P, Y), conformity_score="new_set", prefit=True
    ).fit(P, Y),
    "regressor": lambda: confide.PrivateConformalRegressor(
        DummyRegressor().fit(P, P[:, 1]), conformity_score="new_interval", prefit=True
    ).fit(P, P[:, 1]),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_a_score_without_an_implementation_raises(place):
    with refused(InputError, "score"):
        PLACES[place]()


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        (("--probabilities", "p_*", "--label", "y", "--label-positions", "--score", "new_set"), REFUSED),
        (("--prediction", "f", "--target", "t", "--score", "new_interval"), USAGE),
    ],
)
def test_the_command_line_raises_for_it(columns, code, tmp_path, capsys):
    source, out = tmp_path / "t.parquet", tmp_path / "out.json"
    pyarrow.parquet.write_table(TABLE, source)
    stated = ("--alpha", "0.1", "--epsilon", "1", "--out", str(out))
    assert main(["calibrate", str(source), *columns, *stated]) == code
    assert "score" in capsys.readouterr().err
    assert not out.exists()
