"""What holds for every registered score: those of this library, and those that docs/howto/own-score.md registers."""

import contextlib
import copy
import importlib
import math
import sys
from dataclasses import replace
from unittest import mock

import numpy as np
import pyarrow
import pytest

import confide
from confide.arrays import tempered
from confide.candidates import Spread
from confide.cli import main
from confide.core import remarks
from confide.reports.example import worked_example
from confide.reports.words import rule
from confide.scores import LIBRARY, interval_ends, score_kind, set_mask
from confide.scores import score as registry
from confide.scores.ranked import magic
from confide.tables import ClassColumns, TargetColumns, counting_query, score_histogram
from tests.builders import grid
from tests.calibrations import calibration_at, changed
from tests.docs.blocks import ROOT, blocks
from tests.module_fixtures import any_row_sums  # noqa: F401 - a fixture
from tests.refused import numbers, refused

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")

OWN = {}
with mock.patch.dict(registry._REGISTERED), contextlib.redirect_stdout(None):
    for block in blocks(ROOT / "docs/howto/own-score.md"):
        if block.runs:
            exec(block.text, scope := globals().get("scope", {}))  # noqa: S102
    OWN = {name: score for name, score in registry.SCORES.items() if score not in LIBRARY}

PARAMETERS = {"raps": "(penalty=0.3,k_reg=2)", "saps": "(penalty=0.1)"}
NAMES = [
    score.name + ending + PARAMETERS.get(score.name, "")
    for score in (*LIBRARY, *OWN.values())
    for ending in ("", "_deterministic")[: 1 + score.randomised]
]
SETS = [
    name
    for name in NAMES
    if {**registry.SCORES, **OWN}[name.partition("(")[0].removesuffix("_deterministic")].task == "classification"
]
INTERVALS = [name for name in NAMES if name not in SETS]
TEMPERED = [
    "lac(temperature=2)",
    "margin(temperature=2)",
    "aps_deterministic(temperature=0.5)",
    "raps(penalty=0.3,k_reg=1,temperature=3)",
]
SETS += [*TEMPERED, "one_minus_margin(temperature=2)"]


@pytest.fixture(autouse=True)
def own_scores():
    """The scores of the page are registered."""
    with mock.patch.dict(registry._REGISTERED, OWN):
        yield


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
    yield "big-endian", soft[:, :9].astype(">f4")
    yield "long double", soft[:, :9].astype(np.longdouble)


def shares(name, n):
    return np.random.default_rng(2).random(n) if score_kind(name).randomised else None


def predictions(name, n=400):
    """Predictions, difficulties and targets of many sizes."""
    rng, score = np.random.default_rng(4), score_kind(name).score
    f = np.exp(rng.normal(size=n) * 3)
    pairs = np.column_stack([f - rng.random(n), f + rng.random(n)])
    difficulty = np.exp(rng.normal(size=n)) if score.difficulty else None
    return pairs if score.quantiles else f, difficulty, f + rng.normal(size=n)


def formula(row, y, name, u):
    """The definition of each score, in plain Python."""
    family = score_kind(name)
    if family.temperature is not None:
        row, name = tempered(np.array([row]), family.temperature)[0], name.partition("(")[0]
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


@pytest.mark.slow(unless="raps(penalty=0.3,k_reg=1,temperature=3)-negative zero")
@pytest.mark.parametrize(
    ("name", "table"), grid([name for name in SETS if score_kind(name).score in LIBRARY], list(dict(tables())))
)
def test_scores_are_those_of_their_formulas(name, table):
    """Bit for bit, every class of every row."""
    p = dict(tables())[table]
    u = shares(name, len(p))
    wanted = [[formula(row, y, name, 1.0 if u is None else u[i]) for y in range(p.shape[1])] for i, row in enumerate(p)]
    np.testing.assert_array_equal(confide.all_scores(p, name, u=u), np.array(wanted))


@pytest.mark.parametrize(("name", "table"), grid(SETS, list(dict(tables()))))
def test_sets_invert_the_scores(name, table):
    """Bit for bit: own scores, sets at, below and above scores, per record and per class; each record on its own."""
    p, rng = dict(tables())[table], np.random.default_rng(2)
    u, before = shares(name, len(p)), p.copy()
    whole = confide.all_scores(p, name, u=u)
    for y in rng.integers(0, p.shape[1], (3, len(p))):
        np.testing.assert_array_equal(confide.class_score(p, y, name, u=u), whole[np.arange(len(p)), y])
    some = rng.choice(np.unique(whole), 40)
    for threshold in [*some, *np.nextafter(some, np.inf), *np.nextafter(some, -np.inf), -2.0, 0.0, 1.0, np.inf]:
        np.testing.assert_array_equal(set_mask(p, name, threshold, u=u), whole <= threshold)
    each_row, each_class = rng.choice(some, len(p)), rng.choice(some, p.shape[1])
    np.testing.assert_array_equal(set_mask(p, name, each_row, u=u), whole <= each_row[:, None])
    np.testing.assert_array_equal(set_mask(p, name, each_class, u=u, per_class=True), whole <= each_class)
    for rows in (slice(-1, None), slice(0, 2)):
        part = set_mask(p[rows], name, some[0], u=None if u is None else u[rows])
        np.testing.assert_array_equal(part, whole[rows] <= some[0])
    np.testing.assert_array_equal(p, before)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_blocks_and_threads_do_not_change_results(name):
    """A table large enough for several threads and blocks, against its own rows in another order."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(400) / 20, 4000).astype(np.float32)
    u = shares(name, len(p))
    y, order = rng.integers(0, 400, len(p)), rng.permutation(len(p))
    scores = confide.class_score(p, y, name, u=u)
    shuffled = None if u is None else u[order]
    np.testing.assert_array_equal(confide.class_score(p[order], y[order], name, u=shuffled), scores[order])
    threshold = np.quantile(scores, 0.7)
    mask = set_mask(p, name, threshold, u=u)
    np.testing.assert_array_equal(mask[np.arange(len(p)), y], scores <= threshold)
    np.testing.assert_array_equal(
        set_mask(p[order[:50]], name, threshold, u=None if u is None else u[order[:50]]), mask[order[:50]]
    )
    out = np.empty_like(mask)
    assert set_mask(p, name, threshold, u=u, out=out) is out
    np.testing.assert_array_equal(out, mask)


@pytest.mark.parametrize("name", INTERVALS)
def test_intervals_invert_the_scores_and_grow_with_the_threshold(name):
    """Ends contain every target whose score is at most the threshold, and no target far beyond it."""
    f, difficulty, _ = predictions(name)
    narrower = None
    for threshold in (-0.1, 0.0, 0.3, 7.0, np.inf)[score_kind(name).low == 0 :]:
        lower, upper = interval_ends(f, name, threshold, difficulty=difficulty)
        for end, outward in ((lower, -np.inf), (upper, np.inf)):
            y = np.where(np.isfinite(end), end, 0.0)
            for _ in range(4):
                y = np.nextafter(y, outward)
            with np.errstate(invalid="ignore"):
                inside = confide.interval_score(f, y, name, difficulty=difficulty) <= threshold
            assert not np.any(inside & ~((lower <= y) & (y <= upper)))
        if 0 < threshold < np.inf:
            y = np.random.default_rng(5).uniform(np.maximum(lower, -1e9), np.minimum(upper, 1e9))
            scores = confide.interval_score(f, y, name, difficulty=difficulty)
            assert (scores <= threshold * (1 + 1e-9) + 1e-9).all()
        if narrower is not None:
            assert ((lower <= narrower[0]) & (narrower[1] <= upper)).all()
        narrower = lower, upper


@pytest.mark.parametrize("name", NAMES)
def test_candidates_cover_the_range(name):
    """From the smallest score to the largest one, or far beyond a size of 1, where thresholds cause a warning."""
    kind = score_kind(name)
    for candidates in (kind.candidates(), *(confide.Candidates.quantiles(kind.spread(), size) for size in (24, 300))):
        edges, largest = candidates.edges, kind.largest(10)
        assert kind.low <= edges[0]
        assert edges[-1] <= kind.high
        assert edges[0] <= max(kind.low + 1e-5, -30)
        assert edges[-1] >= (largest if largest < math.inf else 30)
        assert kind.plausible_size(candidates.recipe) >= np.median(np.abs(edges))
        listed = {"recipe": candidates.recipe, "candidates": candidates.size}
        said = " ".join(remarks(changed(calibration_at(edges[-1], name), **listed)))
        bounded = edges[-1] <= 1.01 and kind.task == "classification"  # sums of probabilities, up to rounding
        assert bounded or "unit=" in said or "at least the largest value" in said


@pytest.mark.parametrize("name", NAMES)
def test_one_sentence_states_its_sets_and_an_example_shows_one(name):
    kind = score_kind(name)
    for threshold in kind.candidates().edges[[100, 250]]:
        released = calibration_at(threshold, name)
        sentence = rule(released.first)
        assert sentence.endswith(".")
        assert ". " not in sentence
        assert "{" not in sentence
        assert any(digit in sentence for digit in "0123456789")
        assert worked_example(released) is not None or name in ("cqr_low", "cqr_high")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_release_states_its_name_and_covers(name):
    """Calibrate, write, read, evaluate: the true labels and targets that were calibrated are covered."""
    rng = np.random.default_rng(3)
    if name in SETS:
        p, y = rng.dirichlet(np.ones(5) / 2, 3000), rng.integers(0, 5, 3000)
        u = shares(name, 3000)
        scores, records = confide.class_score(p, y, name, u=u), {"probabilities": p, "labels": y}
    else:
        f, difficulty, y = predictions(name, 3000)
        scores, records = confide.interval_score(f, y, name, difficulty=difficulty), {"predictions": f, "targets": y}
        records |= {} if difficulty is None else {"difficulty": difficulty}
    released = confide.calibrate(scores, 0.2, 2.0)
    assert released.score == name
    again = confide.Release.from_json(released.to_json())
    assert again == released
    assert confide.evaluate(again, **records).coverage.value > 0.7


# Fronts: sets and intervals in the interfaces and runtimes of other libraries, or an error about the score.


def by_torch(release, x, u=None):
    """Tensors in main memory."""
    torch, front = pytest.importorskip("torch"), pytest.importorskip("confide.torch")
    if score_kind(release.score).task == "regression":
        return np.array([end.numpy() for end in front.predict_interval(torch.asarray(x), release)])
    shares = None if u is None else torch.asarray(u)
    return front.predict_set(torch.asarray(x), release, logits=False, u=shares).numpy()


def by_array_standard(release, x, u=None):
    """As on a device; logarithms and powers may differ in the last digits."""
    torch, front = pytest.importorskip("torch"), pytest.importorskip("confide.array_api")
    with mock.patch("confide.array_api.in_memory", return_value=None):
        return front.predict_mask(torch.asarray(x), release, u=None if u is None else torch.asarray(u)).numpy()


def by_onnx(release, x, u=None):
    """A graph of the same type, run by onnxruntime."""
    pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'confide[onnx]'")
    from tests.onnx.test_append import append, passing, run

    found = run(append(passing(["n", *x.shape[1:]], x.dtype.type), release), x=x)
    return found["sets"] if "sets" in found else np.array([found["lower"], found["upper"]])


def unlike_numpy(front, kind):
    """The argument of the error by which a front refuses a score; None if it computes it."""
    if front is by_torch:
        return "difficulty" if kind.score.difficulty else None
    if front is by_onnx:
        return "score" if kind.score.onnx is None else None
    return "calibration" if kind.task == "regression" else "score" if kind.family in OWN else None


def inputs(name, dtype):
    """Outputs of models, with the numbers u, and thresholds that are scores or lie next to one."""
    kind, rng = score_kind(name), np.random.default_rng(2)
    if kind.task == "regression":
        thresholds = (0.0, 1 / 3, 1e9, np.inf, *([-0.2] if kind.low < 0 else []))
        yield predictions(name)[0].astype(dtype), None, thresholds
        return
    for k in (2, 70):
        p = rng.dirichlet(np.full(k, 0.4), 60)
        p[:30] = rng.multinomial(8, p[:30] / p[:30].sum(axis=1, keepdims=True)) / 8  # ties and zeros
        p, u = p.astype(dtype), shares(name, 60)
        scores = np.sort(confide.all_scores(p, name, u=u).ravel())
        yield p, u, (scores[len(scores) // 3], np.nextafter(scores[len(scores) // 2], -np.inf), 0.5)


@pytest.mark.slow(unless="by_array_standard-normalised_residual")
@pytest.mark.parametrize(("front", "name"), grid([by_torch, by_array_standard, by_onnx], [*NAMES, *TEMPERED]))
def test_every_front_has_the_sets_and_intervals_of_the_score_or_raises(front, name):
    """Equal bit for bit, but for scores of tempered probabilities next to the threshold, and the type of intervals."""
    kind = score_kind(name)
    for dtype in (np.float16, np.float32, np.float64)[kind.task == "regression" :]:
        for x, u, thresholds in inputs(name, dtype):
            for threshold in thresholds:
                release = calibration_at(threshold, name)
                if argument := unlike_numpy(front, kind):
                    with refused(confide.errors.InputError, argument):
                        front(release, x, u)
                elif kind.task == "classification":
                    apart = np.abs(confide.all_scores(x, name, u=u) - threshold) > 1e-12
                    compared = apart | (kind.temperature is None)
                    expected = confide.predict_set(x, release, u=u).mask
                    np.testing.assert_array_equal(front(release, x, u)[compared], expected[compared])
                else:
                    (lower, upper), (low, high) = front(release, x), confide.predict_interval(x, release)
                    assert ((lower <= low) & (low < np.nextafter(lower, np.inf))).all()
                    assert ((np.nextafter(upper, -np.inf) < high) & (high <= upper)).all()


P, Y = np.array([[0.7, 0.2, 0.1]] * 40), np.array([0] * 30 + [2] * 10)
TABLE = pyarrow.table({"p_a": P[:, 0], "p_b": P[:, 1], "p_c": P[:, 2], "y": Y, "f": P[:, 0], "t": P[:, 1]})
CLASSES = ClassColumns(("p_a", "p_b", "p_c"), "y", (0, 1, 2))


@pytest.mark.parametrize("name", SETS)
def test_invalid_probabilities_raise_and_no_records_have_no_sets(name):
    p = np.where(np.isin(np.arange(50), (7, 30))[:, None] & (np.arange(4) == 1), np.nan, 0.25)
    for call in (lambda: confide.class_score(p, np.ones(50, int), name), lambda: set_mask(p, name, 0.5)):
        with refused(confide.errors.InputError, "probabilities") as e:
            call()
        assert numbers(e) == [2, 7]
    sets = confide.predict_set(np.zeros((0, 3)), calibration_at(0.5, name), ["a", "b", "c"])
    assert (len(sets), sets.labels(), sets.classes) == (0, [], ("a", "b", "c"))
    assert confide.class_score(np.zeros((0, 3)), [], name).shape == (0,)
    assert confide.all_scores(np.zeros((0, 3)), name).shape == (0, 3)


@pytest.mark.slow
def test_tables_compute_it_or_raise(tmp_path):
    """No computation takes another score instead: those outside Python raise an error."""
    candidates = confide.Candidates.unit(100)
    sets, intervals = "one_minus_margin", "root_residual"
    expected = confide.ScoreHistogram.from_scores(confide.class_score(P, Y, sets), candidates)
    np.testing.assert_array_equal(
        score_histogram(TABLE, replace(CLASSES, score=sets), candidates).counts, expected.counts
    )
    expected = confide.ScoreHistogram.from_scores(confide.interval_score(P[:, 0], P[:, 1], intervals), candidates)
    counted = score_histogram(TABLE, TargetColumns("f", "t", intervals), candidates)
    np.testing.assert_array_equal(counted.counts, expected.counts)
    for what in (replace(CLASSES, score=sets), TargetColumns("f", "t", intervals)):
        with refused(confide.errors.InputError, "score"):
            counting_query("duckdb", "records", what, 0.1, 1.0)
    source, out = tmp_path / "t.parquet", tmp_path / "out.json"
    pyarrow.parquet.write_table(TABLE, source)
    columns = ("--prediction", "f", "--target", "t", "--score", intervals)
    assert main(["calibrate", str(source), *columns, "--alpha", "0.1", "--epsilon", "1", "--out", str(out)]) == 0
    assert confide.Release.load(out).score == intervals


@pytest.mark.parametrize("name", SETS)
def test_a_device_computes_the_scores_of_the_true_classes(name):
    """By the functions of the array standard, whose logarithms and powers may differ in the last digits."""
    torch, front = pytest.importorskip("torch"), pytest.importorskip("confide.array_api")
    rng, kind = np.random.default_rng(2), score_kind(name)
    for p in (rng.dirichlet(np.ones(5) / 3, 300), rng.multinomial(8, np.ones(6) / 6, 300).astype(np.float32) / 8):
        u, y = shares(name, 300), rng.integers(0, 5, 300)
        with mock.patch("confide.array_api.in_memory", return_value=None):
            if kind.family in OWN:
                with refused(confide.errors.InputError, "score"):
                    front.true_scores(*map(torch.asarray, (p, y)), name)
                continue
            scores = front.true_scores(*map(torch.asarray, (p, y)), name, u=None if u is None else torch.asarray(u))
        own = confide.class_score(p, y, name, u=u)
        np.testing.assert_allclose(scores.numpy(), own, atol=0 if kind.temperature is None else 1e-12)


UNREGISTERED = {
    "predict_set": lambda name: confide.predict_set(P, calibration_at(0.9, name)),
    "predict_interval": lambda name: confide.predict_interval(P[:, 0], calibration_at(0.9, name)),
    "evaluate": lambda name: confide.evaluate(calibration_at(0.9, name), probabilities=P, labels=Y),
    "class_score": lambda name: confide.class_score(P, Y, name),
    "all_scores": lambda name: confide.all_scores(P, name),
    "interval_score": lambda name: confide.interval_score(P[:, 0], P[:, 1], name),
    "table of classes": lambda name: score_histogram(TABLE, replace(CLASSES, score=name)),
    "table of targets": lambda name: score_histogram(TABLE, TargetColumns("f", "t", name)),
}


@pytest.mark.parametrize("call", UNREGISTERED)
def test_a_score_that_is_not_registered_raises_with_the_remedy(call):
    with refused(confide.errors.InputError, "score") as e:
        UNREGISTERED[call]("another_score")
    assert "register" in e.value.remedy.lower()


@pytest.mark.slow(unless="one_minus_margin-options2")
@pytest.mark.parametrize("options", [{}, {"candidates": 200}, {"neighbors": "replace_one"}])
@pytest.mark.parametrize("name", ["one_minus_margin", "root_residual"])
def test_a_release_of_a_score_that_is_not_registered_is_read_verified_and_shown(tmp_path, name, options):
    """A file states the spread of candidates of a score that another program may not have."""
    released = confide.calibrate(np.linspace(0, 1, 2000) ** 3, 0.1, 1.0, score=name, **options)
    released.save(tmp_path / "release.json")
    with mock.patch.dict(registry._REGISTERED):
        del registry._REGISTERED[name]
        again = confide.load(tmp_path / "release.json")
        assert again == released
        assert name in str(again)
        assert main(["verify", str(tmp_path / "release.json")]) == 0
        assert rule(again.first).endswith(".")
        with refused(confide.errors.InputError, "score"):
            confide.predict_set(P, again) if name in SETS else confide.predict_interval(P[:, 0], again)


def test_an_entry_point_registers_a_score(tmp_path, monkeypatch):
    """When an unknown name is met; no known name imports anything."""
    (tmp_path / "far_away.py").write_text(
        "import confide\nfrom confide.candidates import Spread\n"
        "score = confide.Score('far_away', 'classification', low=0.0, high=1.0, spread=Spread('probability'),\n"
        "    sentence='{threshold}.', classes=lambda p: 1 - p)\n"
    )
    (tmp_path / "far_away-1.dist-info").mkdir()
    (tmp_path / "far_away-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: far_away\nVersion: 1\n")
    (tmp_path / "far_away-1.dist-info/entry_points.txt").write_text("[confide.scores]\nfar_away = far_away:score\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    registry._load_entry_points.cache_clear()
    assert score_kind("lac").score is LIBRARY[0]
    assert "far_away" not in sys.modules
    np.testing.assert_array_equal(confide.class_score(P, Y, "far_away"), confide.lac_score(P, Y))
    del sys.modules["far_away"]


MARGIN = {"low": 0.0, "high": 1.0, "spread": Spread("probability"), "sentence": ".", "classes": lambda p: 1 - p}


@pytest.mark.parametrize(
    ("name", "change", "argument"),
    [
        ("Own", {}, "name"),
        ("own_deterministic", {}, "name"),
        ("own", {"classes": None}, "classes"),
        ("own", {"low": 1.0}, "low"),
        ("own", {"low": -math.inf}, "low"),
        ("own", {"spread": Spread(around=0.5)}, "spread"),
        ("own", {"task": "ranking"}, "task"),
        ("own", {"task": "regression"}, "own"),
    ],
)
def test_scores_that_are_not_complete_raise(name, change, argument):
    stated = {"task": "classification", **MARGIN, **change}
    with refused((confide.errors.InputError, confide.errors.InputTypeError), argument):
        confide.Score(name, **stated)


def test_a_name_stands_for_one_score():
    with refused(confide.errors.InputError, "score"):
        confide.register_score(confide.Score("lac", "classification", **MARGIN))
    with refused(confide.errors.InputTypeError, "score"):
        confide.register_score("lac")
    assert confide.register_score(OWN["one_minus_margin"]) is OWN["one_minus_margin"]
    assert copy.deepcopy(OWN["one_minus_margin"]) is OWN["one_minus_margin"]
    with refused(confide.errors.InputError, "score"):
        copy.copy(confide.Score("unregistered", "classification", **MARGIN))


def test_a_function_of_the_wrong_shape_raises():
    confide.register_score(confide.Score("flat", "classification", **{**MARGIN, "classes": lambda p: p[:, 0]}))
    with refused(confide.errors.InputError, "score"):
        confide.class_score(P, Y, "flat")
