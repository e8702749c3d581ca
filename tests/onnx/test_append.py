"""Graphs with appended sets and intervals, run by onnxruntime, agree with `predict_set` and `predict_interval`."""

import warnings
from functools import partial

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs ONNX: pip install 'confide[onnx]'")
runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'confide[onnx]'")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import confide  # noqa: E402
from confide.onnx import append, read  # noqa: E402
from tests.calibrations import calibration_at, calibrations_at  # noqa: E402
from tests.refused import refused  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")

KINDS = {np.float16: TensorProto.FLOAT16, np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE}


def graph_of(nodes, inputs, outputs, weights=(), opsets=(("", 17),)):
    """A model with these nodes; inputs and outputs are names with a shape and a type."""
    ends = [
        [helper.make_tensor_value_info(name, KINDS[dtype], shape) for name, (shape, dtype) in tensors.items()]
        for tensors in (inputs, outputs)
    ]
    made = [helper.make_node(op, given, found, **attributes) for op, given, found, attributes in nodes]
    graph = helper.make_graph(made, "model", *ends, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*one) for one in opsets], ir_version=10)


def passing(shape, dtype=np.float32, name="p", opset=17):
    """A model that returns its input."""
    one = (shape, dtype)
    return graph_of([("Identity", ["x"], [name], {})], {"x": one}, {name: one}, opsets=[("", opset)])


def classifier(features=4, classes=3):
    """A linear classifier with softmax, in float32."""
    values = np.random.default_rng(1).normal(size=(features, classes)).astype(np.float32)
    nodes = [("MatMul", ["x", "weight"], ["logits"], {}), ("Softmax", ["logits"], ["p"], {"axis": 1})]
    outputs = dict.fromkeys(("logits", "p"), (["n", classes], np.float32))
    return graph_of(nodes, {"x": (["n", features], np.float32)}, outputs, [numpy_helper.from_array(values, "weight")])


def linear(*kinds, opset=17):
    """A model with one node of each of these kinds, in sequence."""
    names = ["x", *(f"t{i}" for i in range(len(kinds) - 1)), "p"]
    nodes = [
        (kind, [names[i], *(["weight"] if kind == "Gemm" else [])], [names[i + 1]], {"to": 1} if kind == "Cast" else {})
        for i, kind in enumerate(kinds)
    ]
    one = (["n", 3], np.float32)
    weights = [numpy_helper.from_array(np.eye(3, dtype=np.float32), "weight")]
    return graph_of(nodes, {"x": one}, {"p": one}, weights, [("", opset)])


def run(model, **given):
    onnx.checker.check_model(model)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, given), strict=True))


def assert_intervals(found, expected):
    np.testing.assert_array_equal(found["lower"], expected.lower)
    np.testing.assert_array_equal(found["upper"], expected.upper)


def probabilities(dtype, k, n=60):
    """Rows with ties and with zeros, and rows without."""
    rng = np.random.default_rng(k)
    p = rng.dirichlet(np.full(k, 0.4), n)
    p[: n // 2] = rng.multinomial(8, p[: n // 2] / p[: n // 2].sum(axis=1, keepdims=True)) / 8
    return p.astype(dtype)


@pytest.fixture(scope="module")
def by_group():
    rng = np.random.default_rng(0)
    scores, ward = rng.random(3000) * np.where(np.arange(3000) % 2, 0.4, 0.8), np.where(np.arange(3000) % 2, "a", "b")
    return confide.calibrate(scores, 0.1, 2.0, groups=ward, names=["a", "b"], score="lac", neighbors="replace_one")


@pytest.mark.parametrize("score", ["lac", "margin"])
@pytest.mark.parametrize("threshold", [-0.5, 0.0, 1.0, np.inf])
def test_thresholds_at_the_ends_of_the_range(score, threshold):
    p, release = probabilities(np.float32, 5), calibration_at(threshold, score)
    expected = confide.predict_set(p, release).mask
    np.testing.assert_array_equal(run(append(passing(["n", 5]), release), x=p)["sets"], expected)


def test_every_float_around_the_cut_is_on_its_side():
    """LAC: the 2000 float32 numbers next to one minus the threshold."""
    release = calibration_at(0.7310585786300049)
    near = np.float32(1 - release.threshold).view(np.uint32) + np.arange(-1000, 1000)
    p = near.astype(np.uint32).view(np.float32)
    p = np.column_stack([p, 1 - p])
    found = run(append(passing(["n", 2]), release), x=p)["sets"]
    np.testing.assert_array_equal(found, confide.predict_set(p, release).mask)
    assert 0 < found[:, 0].sum() < 2000


@pytest.mark.parametrize("bad", [np.nan, -0.25, 1.5])
@pytest.mark.parametrize("score", ["lac", "margin", "lac(temperature=2)"])
def test_a_record_that_predict_set_rejects_gets_every_class(score, bad):
    p = np.array([[0.5, 0.3, 0.2], [bad, 0.5, 0.5], [0.9, 0.05, 0.05]], dtype=np.float32)
    release = calibration_at(0.6, score)
    with refused(confide.errors.InputError, "probabilities"):
        confide.predict_set(p, release)
    found = run(append(passing(["n", 3]), release), x=p)["sets"]
    assert found[1].all()
    np.testing.assert_array_equal(found[[0, 2]], confide.predict_set(p[[0, 2]], release).mask)


def test_a_forest_whose_probabilities_sum_to_more_than_one_in_float32():
    p = np.array([[np.nextafter(np.float32(1), np.float32(2)), 0.0], [0.3, 0.7]], dtype=np.float32)
    found = run(append(passing(["n", 2]), calibration_at(0.5)), x=p)["sets"]
    np.testing.assert_array_equal(found, [[True, False], [False, True]])


def test_a_classifier_with_softmax():
    """A graph with computations: its sets are those of its probabilities."""
    x = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    release = calibration_at(0.6)
    found = run(append(classifier(), release, output="p"), x=x)
    expected = confide.predict_set(found["p"], release).mask
    np.testing.assert_array_equal(found["sets"], expected)
    assert 0 < expected.mean() < 1
    from_logits = run(append(classifier(), release, output="logits", logits=True), x=x)
    np.testing.assert_array_equal(from_logits["probabilities"], found["p"])
    np.testing.assert_array_equal(from_logits["sets"], expected)
    assert run(append(classifier(), release, output="p"), x=x[:0])["sets"].shape == (0, 3)


@pytest.mark.parametrize(("names", "dtype"), [(("a", "b", "c"), object), ((0, 1, 2), np.int64)])
def test_thresholds_per_group(names, dtype):
    """The names of the groups are an input; for a group that was not calibrated nothing is excluded."""
    p, (low, high) = probabilities(np.float32, 4), confide.Candidates.unit(10).values[[4, 7]]
    first, second, other = names
    release = calibrations_at("group", {first: low, second: high})
    groups = np.array([names[i % 3 % 2] for i in range(len(p))], dtype)
    model = append(passing(["n", 4]), release)
    found = run(model, x=p, groups=groups)["sets"]
    np.testing.assert_array_equal(found, confide.predict_set(p, release, groups=groups).mask)
    assert run(model, x=p, groups=np.full(len(p), other, dtype))["sets"].all()
    assert read(model) == release


@pytest.mark.parametrize("score", ["lac", "margin"])
def test_thresholds_per_class(score):
    release = calibrations_at("class", {"cat": 0.9, "dog": 0.3, "emu": np.inf}, score)
    p, names = probabilities(np.float32, 3), ["emu", "cat", "dog"]
    found = run(append(passing(["n", 3]), release, classes=names), x=p)["sets"]
    np.testing.assert_array_equal(found, confide.predict_set(p, release, names).mask)
    with refused(confide.errors.InputError, "classes"):
        append(passing(["n", 3]), release)


@pytest.mark.slow
def test_labels_of_a_bounded_loss():
    rng = np.random.default_rng(0)
    p = rng.random((2000, 4)).astype(np.float32)
    release = confide.calibrate_false_negatives(p, rng.random(p.shape) < p, 0.1, 2.0, neighbors="replace_one")
    model = append(passing(["n", 4]), release)
    np.testing.assert_array_equal(run(model, x=p)["sets"], confide.predict_labels(p, release).mask)
    assert read(model) == release
    words = {one.key: one.value for one in model.metadata_props}["confide.promise"]
    assert "true labels are missed on average" in words
    logits = np.log(p) - np.log1p(-p)
    found = run(append(passing(["n", 4]), release, logits=True), x=logits)
    np.testing.assert_array_equal(found["sets"], confide.predict_labels(found["probabilities"], release).mask)


def centers(score, dtype, n=300):
    rng = np.random.default_rng(0)
    if score.startswith("cqr"):
        return np.sort(rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-30, 30, (n, 1)), axis=1).astype(dtype)
    return (rng.lognormal(sigma=20, size=n) * rng.choice([-1, 1], n)).astype(dtype)


def test_a_record_without_a_usable_prediction_gets_the_whole_line():
    x = np.array([[np.nan, 1.0], [1.0, np.inf], [-np.inf, 1.0], [1.0, 2.0]], dtype=np.float32)
    found = run(append(passing(["n", 2]), calibration_at(0.5, "cqr")), x=x)
    assert np.isneginf(found["lower"]).tolist() == np.isposinf(found["upper"]).tolist() == [True] * 3 + [False]


def test_intervals_with_two_sides_and_with_groups():
    quantiles, sides = centers("cqr", np.float64), calibrations_at("side", {"low": 0.5, "high": -0.1})
    found = run(append(passing(["n", 2], np.float64), sides), x=quantiles)
    assert_intervals(found, confide.predict_interval(quantiles, sides))
    groups = calibrations_at("group", {"a": 0.7, "b": 0.3}, "absolute_residual")
    x, ward = centers("absolute_residual", np.float32), np.where(np.arange(300) % 3, "a", "b")
    found = run(append(passing(["n"]), groups), x=x, groups=ward.astype(object))
    assert_intervals(found, confide.predict_interval(x, groups, groups=ward))


def test_quantiles_from_separate_outputs():
    one = (["n", 1], np.float32)
    nodes = [("Identity", ["a"], ["low"], {}), ("Identity", ["b"], ["high"], {})]
    model = graph_of(nodes, {"a": one, "b": one}, {"low": one, "high": one}, opsets=[("", 13)])
    pairs = centers("cqr", np.float32)
    for score, output, x in (("cqr", ("low", "high"), pairs), ("absolute_residual", "low", pairs[:, 0])):
        release = calibration_at(0.5, score)
        found = run(append(model, release, output=output), a=pairs[:, :1], b=pairs[:, 1:])
        assert_intervals(found, confide.predict_interval(x, release))


@pytest.fixture(scope="module")
def released():
    return confide.calibrate(
        np.linspace(0, 0.6, 2000), 0.1, 1.0, score="lac", classes=["cat", "dog", "emu"], neighbors="replace_one"
    )


def test_the_certificate_is_stored_in_the_model(released, tmp_path):
    path, served = tmp_path / "model.onnx", tmp_path / "served.onnx"
    onnx.save(classifier(), path)
    model = append(path, released, output="p")
    onnx.save(model, served)
    assert read(served) == released
    kept = {one.key: one.value for one in model.metadata_props}
    assert confide.Release.from_json(kept["confide.release"]) == released
    assert kept["confide.checksum"] == released.checksum
    assert (kept["confide.alpha"], kept["confide.epsilon"], kept["confide.score"]) == ("0.1", "1", "lac")
    assert kept["confide.promise"] == str(released.guarantee)
    assert kept["confide.classes"] == '{"names": ["cat", "dog", "emu"]}'
    assert onnx.load(path).SerializeToString() == classifier().SerializeToString()


def altered(model, what):
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    own = [one for one in changed.graph.initializer if one.name.startswith("confide/")]
    if what == "threshold":
        cut = own[0]
        cut.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(cut) + np.float32(0.25), cut.name))
    elif what == "node":
        next(one for one in changed.graph.node if one.op_type == "GreaterOrEqual").op_type = "Greater"
    elif what == "promise":
        entry = next(one for one in changed.metadata_props if one.key == "confide.promise")
        entry.value = entry.value.replace("0.9", "0.99")
    else:
        entry = next(one for one in changed.metadata_props if one.key == f"confide.{what}")
        entry.value = entry.value.replace("0.1", "0.2").replace('"p"', '"logits"')
    return changed


@pytest.mark.parametrize("what", ["threshold", "node", "promise", "release", "appended"])
def test_altered_models_raise(released, what):
    model = append(classifier(), released, output="p")
    assert read(model) == released
    with pytest.raises(confide.errors.FormatError):
        read(altered(model, what))


def test_one_of_several_levels():
    release = confide.calibrate(np.linspace(0, 0.6, 3000), [0.3, 0.1], 2.0, score="lac", neighbors="replace_one")
    p = probabilities(np.float32, 3)
    model = append(passing(["n", 3]), release, alpha=0.1)
    np.testing.assert_array_equal(run(model, x=p)["sets"], confide.predict_set(p, release.at(0.1)).mask)
    assert read(model) == release
    with refused(confide.errors.InputError, "alpha"):
        append(passing(["n", 3]), release)


def sequence_model():
    model = passing(["n", 3])
    model.graph.node[0].op_type = "SequenceConstruct"
    model.graph.output[0].CopyFrom(helper.make_tensor_sequence_value_info("p", TensorProto.FLOAT, None))
    return model


PASSING = partial(passing, ["n", 3])


@pytest.mark.parametrize(
    ("model", "release", "options", "argument"),
    [
        (lambda: linear("Unknown", opset=11), "lac", {"logits": False}, "model"),
        (lambda: passing(["n", "k"]), "lac", {}, "output"),
        (PASSING, "lac", {"output": "q"}, "output"),
        (classifier, "lac", {}, "output"),
        (classifier, "lac", {"output": "p", "logits": True}, "logits"),
        (sequence_model, "lac", {}, "output"),
        (partial(PASSING, name="sets"), "lac", {}, "model"),
        (partial(PASSING, name="logits"), "lac", {}, "logits"),
        (lambda: linear("Gemm"), "lac", {}, "logits"),
        (lambda: linear("Gemm", "Identity", "Cast"), "lac", {}, "logits"),
        (lambda: linear("Softmax", "Cast"), "lac", {"logits": True}, "logits"),
        (lambda: passing(["n", 2]), "classes", {}, "probabilities"),
        (PASSING, "lac", {"alpha": 0.2}, "alpha"),
        (PASSING, "lac", {"score": "margin"}, "score"),
        (PASSING, "aps", {}, "score"),
        (PASSING, "saps_deterministic(penalty=0.1)", {}, "score"),
        (PASSING, "top_k", {}, "score"),
        (lambda: passing(["n"]), "gamma", {}, "score"),
        (PASSING, "absolute_residual", {}, "output"),
        (PASSING, "cqr", {}, "output"),
        (lambda: passing(["n"]), "absolute_residual", {"logits": True}, "logits"),
        (PASSING, "my own", {}, "score"),
        (lambda: append(classifier(), calibration_at(0.5), output="p"), "lac", {"output": "p"}, "model"),
        (lambda: 3, "lac", {}, "model"),
    ],
)
def test_invalid_combinations_raise(released, model, release, options, argument):
    given = calibration_at(0.5, release) if release != "classes" else released
    with refused((confide.errors.InputError, confide.errors.InputTypeError), argument):
        append(model(), given, **options)


@pytest.mark.parametrize(("kinds", "logits"), [(["Softmax"], None), (["Sigmoid", "Cast"], None), (["Gemm"], False)])
def test_outputs_with_known_or_stated_probabilities(released, kinds, logits):
    x = np.random.default_rng(0).dirichlet(np.ones(3), 50).astype(np.float32)
    model = append(linear(*kinds), released, logits=logits)
    found = run(model, x=x)
    np.testing.assert_array_equal(found["sets"], run(append(passing(["n", 3]), released), x=found["p"])["sets"])
    assert read(model) == released


@pytest.mark.slow
def test_a_model_that_torch_exports(released, tmp_path):
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'confide[torch]'")
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()
    x, path = torch.randn(50, 4), tmp_path / "model.onnx"
    options = {"input_names": ["x"], "output_names": ["logits"], "opset_version": 17, "dynamo": False}
    options["dynamic_axes"] = {name: {0: "n"} for name in ("x", "logits")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(layers, (x,), path, **options)
    found = run(append(path, released, logits=True), x=x[:20].numpy())
    np.testing.assert_array_equal(found["sets"], confide.predict_set(found["probabilities"], released).mask)


def exported(opset, ml, *nodes, classes=3):
    """A model as skl2onnx 1.20 exports a classifier: it declares old versions, and for old opsets repeats one."""
    rows, versions = (["n", classes], np.float32), [("", opset)] * (2 if opset < 13 else 1)
    nodes += (("Normalizer", ["p"], ["probabilities"], {"domain": "ai.onnx.ml", "norm": "L1"}),)
    model = graph_of(nodes, {"X": rows}, {"probabilities": rows}, opsets=[("ai.onnx.ml", ml), *versions])
    model.graph.output.insert(0, helper.make_tensor_value_info("label", TensorProto.STRING, ["n"]))
    return model


def linear_classifier(*names):
    weights = np.eye(len(names)).ravel().tolist()
    attributes = {"coefficients": weights, "classlabels_strings": names, "intercepts": [0.0] * len(names)}
    attributes |= {"domain": "ai.onnx.ml", "post_transform": "SOFTMAX"}
    return "LinearClassifier", ["X"], ["label", "p"], attributes


@pytest.mark.slow(unless=("13", "22"))
@pytest.mark.parametrize("opset", [9, 12, 13, 22])
def test_models_of_skl2onnx(released, by_group, opset):
    """Its default exports declare ai.onnx.ml 1, and opset 9 for support vector machines, 18 to 22 for other models."""
    model = exported(opset, 1, linear_classifier("cat", "dog", "emu"))
    x = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    served = append(model, released, output="probabilities")
    found = run(served, X=x)
    np.testing.assert_array_equal(found["sets"], confide.predict_set(found["probabilities"], released).mask)
    np.testing.assert_array_equal(found["probabilities"], run(model, X=x)["probabilities"])
    assert read(served) == released
    assert {one.domain: one.version for one in served.opset_import} == {"ai.onnx.ml": 1, "": max(opset, 13)}
    ward = np.where(np.arange(50) % 3, "a", "b")
    served = append(model, by_group, output="probabilities")
    expected = confide.predict_set(found["probabilities"], by_group, groups=ward).mask
    np.testing.assert_array_equal(run(served, X=x, groups=ward.astype(object))["sets"], expected)
    assert read(served) == by_group


def test_an_old_label_encoder_is_kept(released, by_group):
    """LabelEncoder is the only operator that ai.onnx.ml 2 changed."""
    encoder = {"domain": "ai.onnx.ml", "classes_strings": ["cat", "dog", "emu"], "default_int64": -1}
    nodes = linear_classifier("cat", "dog", "emu"), ("LabelEncoder", ["label"], ["number"], encoder)
    model = exported(17, 1, *nodes)
    assert read(append(model, released, output="probabilities")) == released
    with refused(confide.errors.InputError, "model"):
        append(model, by_group, output="probabilities")


def test_labels_of_a_classifier_in_another_order_raise():
    released = confide.calibrate(np.linspace(0, 0.5, 2000), 0.1, 1.0, score="lac", classes=["cat", "dog"])
    model = exported(17, 2, linear_classifier("dog", "cat"), classes=2)
    with refused(confide.errors.InputError, "classes"):
        append(model, released, output="probabilities")
    assert read(append(model, released, output="probabilities", classes=["dog", "cat"])) == released
