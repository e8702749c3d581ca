"""`confide evaluate`: for every kind of release the evaluation of the calls on arrays, as file, text, JSON and page.

CASES has a row for each kind of release and way to name columns, REFUSED one for each invalid combination. The words
of the text and of the page are compared elsewhere, as a whole (tests/golden); here both are those of the evaluation.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.cli.exit_codes import CLAIM_FAILED, DONE, REFUSED
from confide.evaluation import Evaluation, evaluate_intervals, evaluate_scores, evaluate_sets
from confide.ledger import Ledger
from confide.tables import ClassColumns
from tests.draws import SECURE
from tests.files import NAMES, classified, write

N = 3000
P, Y = classified(N, 1, np.float64)
RNG = np.random.default_rng(5)
WARD, LABEL, S = RNG.choice(["north", "south"], N), np.array(NAMES)[Y], np.asarray(confide.lac_score(P, Y))
NUMBER = (WARD == "south").astype(np.int64)
T, UPPER, U = RNG.normal(size=N), RNG.random(N), RNG.random(N)
Q = np.stack([np.full(N, -1.0), UPPER], axis=1)
TRUTH = RNG.random(P.shape) < P
LOSS = np.asarray(confide.core.false_negative_thresholds(P, TRUTH, u=U))
DATA = {f"p_{name}": P[:, k] for k, name in enumerate(NAMES)} | {
    "label": LABEL, "ward": WARD, "number": NUMBER, "s": S, "low": Q[:, 0], "high": UPPER, "y": T, "loss": LOSS,
    "place": np.arange(N),
}  # fmt: skip
MODEL, CLASSES = ("--probabilities", "p_*"), ("--probabilities", "p_*", "--label", "label")
SCORES, SIDES = ("--score-column", "s"), ("--prediction", "low, high", "--target", "y")
BY = ("--by", "ward")


SURE = 1000.0
"""An epsilon whose noise changes nothing here: no test below fails by chance."""


@lru_cache
def release(kind: str) -> Any:
    """A release of each kind, from other records than those of DATA."""
    p, y = classified(N)
    scores, label = confide.lac_score(p, y), np.array(NAMES)[y]
    ward = np.random.default_rng(6).choice(["south", "north"], N)

    def grouped(groups, names, **options):
        return confide.calibrate(scores, 0.1, SURE, groups=groups, names=names, score="lac", **options)

    return {
        "one": lambda: confide.calibrate(scores, 0.1, SURE),
        "named": lambda: confide.calibrate(scores, 0.1, SURE, score="lac", classes=NAMES),
        "levels": lambda: confide.calibrate(scores, [0.2, 0.1], epsilon=SURE),
        "groups": lambda: grouped(ward, ["south", "north"]),
        "numbers": lambda: grouped((ward == "south").astype(int), [1, 0]),
        "letters": lambda: grouped(np.where(ward == "south", "a", "b"), ["a", "b"]),
        "classes": lambda: grouped(label, ["emu", "cat", "dog"], by="class"),
        "sides": lambda: confide.calibrate_sides(Q, T, 0.1, SURE),
        "cqr": lambda: confide.calibrate(confide.cqr_score(Q, T), 0.1, SURE, score="cqr"),
        "labels": lambda: confide.calibrate_false_negatives(P, TRUTH, 0.1, SURE, u=U),
        "weights": lambda: confide.calibrate(scores, 0.1, SURE, labels=label, class_weights=dict.fromkeys(NAMES, 1)),
    }[kind]()  # fmt: skip


@dataclass(frozen=True)
class Case:
    kind: str
    columns: tuple[str, ...]
    expected: Any

    def __str__(self) -> str:
        return " ".join([self.kind, *self.columns])


def sets(kind, *columns, **options):
    return Case(kind, (*CLASSES, *columns), lambda: evaluate_sets(release(kind), P, LABEL, NAMES, **options))


def scored(kind, *columns, scores=S, **options):
    return Case(kind, columns, lambda: evaluate_scores(release(kind), scores, **options))


def intervals(kind, *columns):
    return Case(kind, (*SIDES, *columns), lambda: evaluate_intervals(release(kind), Q, T))


CASES = [
    sets("one"),
    sets("one", *BY, groups=WARD),
    sets("one", "--by", "number", groups=NUMBER),
    sets("levels", "--examples", "3", examples=3),
    sets("groups", *BY, "--examples", "2", groups=WARD, examples=2),
    sets("numbers", "--by", "number", groups=NUMBER),
    sets("classes"),
    scored("one", *SCORES, *BY, groups=WARD),
    scored("levels", *SCORES),
    scored("classes", *SCORES, "--by", "label", groups=LABEL),
    scored("labels", "--score-column", "loss", scores=LOSS),
    scored("labels", "--score-column", "loss", *BY, scores=LOSS, groups=WARD),
    intervals("sides"),
    intervals("cqr"),
]


@pytest.mark.long(unless="labels --score-column loss --by ward")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_evaluation_is_that_of_the_arrays(confide_run, folder, case):
    """The file, the text, the JSON and the page; also of a CSV file, whose numbers are read back exactly."""
    released, wanted = release(case.kind), case.expected()
    released.save("release.json")
    asked = ("--calibration", "release.json", *case.columns)
    done = confide_run("evaluate", write(folder / "a.parquet", DATA), *asked, "--out", "ev.json")
    assert (done.code, done.err) == (DONE, "")
    found = Evaluation.load("ev.json")
    assert found == wanted
    assert done.out.startswith(str(found.of(released)))
    assert confide.evaluation.NOT_PRIVATE in done.out
    output = confide_run("evaluate", write(folder / "a.csv", DATA), *asked, "--out", "csv.json", "--json")
    assert Evaluation.load("csv.json") == found
    assert output.json["found"] == json.loads(json.dumps(found.fields()["found"]))
    assert (output.json["shortfalls"], output.json["warnings"]) == ([], [])
    page = confide_run("report", "release.json", "--evaluation", "ev.json", "--out", "report.html")
    assert page.code == DONE, page.err
    assert (folder / "report.html").read_text() == confide.report(
        released, evaluation=found, file_name="release.json"
    ).html


@pytest.mark.slow
def test_columns_that_only_count_and_the_evaluation_of_another_release(confide_run, folder):
    release("one").save("release.json")
    release("groups").save("groups.json")
    asked = ("--calibration", "release.json", *CLASSES)
    counted = write(folder / "b.parquet", {f"p_{k}": P[:, k] for k in range(3)} | {"label": LABEL})
    assert "(other)" in confide_run("evaluate", counted, *asked).out  # no label is 0, 1 or 2
    assert confide_run("evaluate", counted, *asked, "--classes", ",".join(NAMES), "--out", "ev.json").code == DONE
    other = confide_run("report", "groups.json", "--evaluation", "ev.json", "--out", "r.html")
    assert other.refused == (REFUSED, "--evaluation")
    assert not (folder / "r.html").exists()


@pytest.mark.slow(unless="private1")
@pytest.mark.parametrize("private", [(), ("--epsilon", "1")])
def test_coverage_below_the_promise(confide_run, folder, private):
    """It is stated first, in the JSON and on the page, and fails a pipeline on request: half are covered here.

    With epsilon 1, a noise of 400 on 1500 missed records would hide it; its probability is below e^-200.
    """
    release("one").save("release.json")
    asked = ("--calibration", "release.json", *CLASSES)
    wrong = write(folder / "other.parquet", DATA | {"label": np.array(NAMES)[(Y + 1) % len(NAMES)]})
    done = confide_run("evaluate", wrong, *asked, *private, "--out", "ev.json")
    assert done.code == DONE
    output = confide_run("evaluate", wrong, *asked, *private, "--json")
    (short,) = output.json["shortfalls"]
    assert (short["broken"], short["promised"], short["chance"]) == (True, 0.9, 0.001)
    assert output.json["warnings"] == [short["sentence"]]
    assert short["sentence"] in output.err
    assert done.out.startswith(short["sentence"].partition(": ")[0])  # the numbers are drawn anew
    assert confide_run("report", "release.json", "--evaluation", "ev.json", "--out", "r.html").code == DONE
    assert "does not keep its promise" in (folder / "r.html").read_text().split("<nav")[0]
    for fail in ((), ("--json",)):
        assert confide_run("evaluate", wrong, *asked, *private, "--fail-below-promise", *fail).code == CLAIM_FAILED
    fair = confide_run("evaluate", write(folder / "a.parquet", DATA), *asked, *private, "--fail-below-promise")
    assert fair.code == DONE


def test_predictions_state_the_promise_and_their_empty_sets(confide_run, folder):
    release("labels").save("labels.json")
    asked = ("--out", "s.csv", "--force", *MODEL)
    done = confide_run("predict", write(folder / "a.parquet", DATA), "--calibration", "labels.json", *asked)
    assert "promise: at most 10 % of a record's true labels are missed" in done.out
    assert "coverage" not in done.out
    confide.calibrate([0.3] * 2000, 0.1, 1.0, score="lac", candidates=confide.Candidates.unit(3)).save("release.json")
    for empty, warned in ((60, False), (600, True)):
        own = np.where(np.arange(1000) < empty, 0.4, 0.8)
        path = write(folder / "new.parquet", {"p_a": own, "p_b": 0.2 + 0 * own, "p_c": 0.8 - own})
        done = confide_run("predict", path, "--calibration", "release.json", *asked)
        assert f"empty sets: {empty} of 1,000 ({empty // 10} %)" in done.out
        assert ("so many that the" in done.err) == warned


# Privately

PAID = ("--ledger", "budget.db", "--dataset", "patients")


@pytest.fixture
def evaluate(confide_run, folder):
    release("one").save("cal.json")
    write(folder / "a.parquet", DATA)

    def run(*options, source="a.parquet"):
        return confide_run("evaluate", source, "--calibration", "cal.json", *CLASSES, *options)

    return run


@pytest.mark.long
def test_charge_before_draw_and_repeat_at_no_cost(evaluate, confide_run, draw_with, folder):
    spent = []

    def watched(counts, scale):
        spent.append(Ledger("budget.db").account("patients").spent().epsilon)
        return SECURE.noisy_counts(counts, scale)

    draw_with(noisy_counts=watched)
    asked = ("--epsilon", 1, *BY, "--groups", "north,south", *PAID)
    one = evaluate(*asked, "--out", "one.json")
    assert one.out.endswith("saved: one.json\nThese numbers are private: they may be published.\n")
    assert set(spent) == {1.0}
    two = evaluate(*asked, "--json").json
    assert two["earlier"] == [Ledger("budget.db").account("patients").entries[0].charged_at]
    assert two["counts"] == json.loads((folder / "one.json").read_text())["counts"]
    wider = evaluate(*asked, "--set", "confidence=0.99", "--json").json
    assert (wider["counts"], wider["confidence"]) == (two["counts"], 0.99)
    other = write(folder / "july.parquet", {name: column[1:] for name, column in DATA.items()})
    assert evaluate(*asked, source=other).refused == (REFUSED, "--dataset")
    evaluate(*asked, "--again", source=other)
    assert Ledger("budget.db").account("patients").spent().epsilon == 2
    confide_run("ledger", "limit", "budget.db", "patients", 2.5)
    drawn = len(spent)
    assert evaluate("--epsilon", 1, "--set", "parts=[]", *PAID).refused == (REFUSED, "--dataset")
    assert evaluate("--epsilon", 0.1, "--set", "neighbors=replace_one", *PAID).refused == (REFUSED, "neighbors")
    assert len(spent) == drawn


@pytest.mark.slow
def test_a_calibration_on_the_same_data_is_pointed_out(evaluate, confide_run):
    confide_run("calibrate", "a.parquet", *CLASSES, "--alpha", 0.1, "--epsilon", 1, "--out", "own.json", *PAID)
    ran = evaluate("--epsilon", 1, *PAID)
    assert ran.code == 0
    assert ran.err.startswith("warning: dataset 'patients' has a calibration in the ledger. If the threshold")
    assert evaluate("--epsilon", 1, "--ledger", "budget.db", "--dataset", "others").err == ""


@pytest.mark.long
def test_a_page_of_a_private_evaluation_depends_on_noisy_counts_alone(draw_with):
    draw_with(noisy_counts=lambda counts, scale: np.full(len(counts), 50))
    asked = {"what": ClassColumns("p_*", "label"), "epsilon": 1.0, "by": "ward", "group_names": ["north", "south"]}
    pages = []
    for n in (0, 7, N):
        table = pa.table({name: column[:n] for name, column in DATA.items()})
        found = confide.evaluate(release("named"), table=table, **asked)
        pages.append(confide.report(release("named"), evaluation=found).html)
    assert pages[0] == pages[1] == pages[2]
    assert "Measured on labelled records, privately" in pages[0]
