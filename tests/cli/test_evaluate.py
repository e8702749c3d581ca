"""`confide evaluate`: for every kind of release the evaluation of the calls on arrays, as file, text, JSON and page.

CASES has a row for each kind of release and way to name columns, REFUSED one for each invalid combination. The words
of the text and of the page are compared elsewhere, as a whole (tests/golden); here both are those of the evaluation.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.cli.exit_codes import ALARM, CLAIM_FAILED, DONE, REFUSED, USAGE
from confide.evaluation import Evaluation, evaluate_intervals, evaluate_scores, evaluate_sets
from confide.ledger import Ledger
from confide.tables import ClassColumns
from confide.watching import Watch
from tests.calibrations import calibration_at
from tests.draws import SECURE
from tests.files import NAMES, class_table, classified, write

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
    sets("levels"),
    sets("groups", *BY, groups=WARD),
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


# --- watching, batch by batch: an exit code for schedulers, one JSON document, and a page

COLUMNS = ("--score-column", "s")
FIRST = ("--epsilon", 1, "--batch", 500)


@pytest.fixture
def look(confide_run, folder):
    calibration_at(float(confide.Candidates.unit(10).values[4]), score=None).save("cal.json")

    def run(name, covered, missed, *options, columns=COLUMNS):
        path = write(folder / "batch.csv", {"s": np.repeat([0.1, 0.9], [covered, missed])})
        return confide_run(
            "watch", path, "--calibration", "cal.json", "--state", "watch.json", "--look", name, *columns, *options
        )

    return run


@pytest.mark.long
def test_a_watch_from_the_first_look_to_an_alarm_and_a_page(look, confide_run, folder):
    first = look("Monday", 460, 40, *FIRST)
    assert first.code == DONE
    assert "its first look fixes these settings" in first.out
    assert "52 looks of 500 records planned" in first.out
    assert "no alarm" in first.out
    for day in range(8):
        ran = look(f"<b>day {day}</b>", 400, 100, "--json", "--out", "course.html", "--force")
    assert (ran.code, ran.err) == (ALARM, "")
    assert ran.json["alarm"] is True
    assert ran.json["alarm_since"].startswith("<b>day")
    assert ran.json["evidence"] > ran.json["alarm_at"] == 20
    assert ran.json["looks"] == 9
    assert ran.json["settings"]["least_coverage"] == {"all": pytest.approx(0.88)}
    assert ran.json["counts"] == list(Watch.load("watch.json").looks[-1].counts)
    page = (folder / "course.html").read_text(encoding="utf-8")
    assert "ALARM since look" in page
    assert "<b>day" not in page
    assert confide_run("report", "watch.json", "--out", "again.html").code == DONE
    assert (folder / "again.html").read_text(encoding="utf-8") == page
    assert confide_run("show", "watch.json", "--json").json["alarm"] == ran.json["alarm_since"]
    assert confide_run("verify", "watch.json").code == DONE
    assert confide_run("predict", "batch.csv", "--calibration", "watch.json", "--out", "x.csv").code != DONE
    good = look("good", 500, 0)
    assert good.code == ALARM
    assert f"ALARM since look {ran.json['alarm_since']!r}" in good.out


def test_refusals_are_one_line_and_change_nothing(look, folder):
    assert look("Monday", 460, 40).refused == (REFUSED, "--epsilon")
    assert look("Monday", 460, 40, *FIRST).code == DONE
    before = (folder / "watch.json").read_text()
    again = look("Monday", 460, 40)
    assert again.refused == (REFUSED, "--look")
    other = look("Tuesday", 460, 40, "--set", "tolerance=0.1")
    assert other.refused == (REFUSED, "tolerance")
    assert (folder / "watch.json").read_text() == before


@pytest.mark.long
def test_private_evaluation_is_reference_for_sizes(confide_run, folder):
    confide.calibrate(np.linspace(0, 0.8, 900), 0.1, 1.0, score="lac", classes=["cat", "dog", "emu"]).save("cal.json")
    path = write(folder / "batch.parquet", class_table(600, lists=False))
    columns = ("--probabilities", "p_*")
    words = ("evaluate", path, *columns, "--label", "name", "--calibration", "cal.json", "--epsilon", 1)
    assert confide_run(*words, "--out", "ev.json").code == DONE
    watch = ("watch", path, "--calibration", "cal.json", "--state", "sizes.json", *columns, "--unlabelled", *FIRST)
    first = confide_run(*watch, "--look", "1", "--set", "reference=ev.json")
    assert first.code == DONE
    assert "against those of a private evaluation" in first.out
    assert confide_run(*words, "--out", "other.json").code == DONE
    assert confide_run(*watch, "--look", "2", "--set", "reference=other.json").refused == (REFUSED, "reference")


def test_corrected_thresholds_are_written_and_applied(look, confide_run, folder):
    """`--in-force` is a file of its own kind: for predictions, and never taken for a guarantee."""
    first = look("1", 440, 60, *FIRST, "--set", "looks=400", "--set", "correct=auto", "--in-force", "now.json")
    assert first.code == DONE
    assert "in force now: threshold" in first.out
    assert "at worst" in first.out
    second = look("2", 440, 60, "--in-force", "now.json", "--json")
    assert second.json["corrected"]["coverage"] is None
    one = confide.CorrectedRelease.load("now.json")
    assert second.json["corrected"]["thresholds"] == {"all": one.threshold}
    assert one == confide.CorrectedRelease(confide.load("cal.json"), Watch.load("watch.json"))
    shown = confide_run("show", "now.json")
    assert "no promise for one record" in shown.out
    assert "coverage at least" not in shown.out
    checked = confide_run("verify", "now.json", "--coverage-at-least", 0.5)
    assert checked.code == CLAIM_FAILED
    assert "promised: none for one record" in checked.err
    for arguments in (
        ("recalibrate", "batch.csv", "--calibration", "now.json", "--epsilon", 1, "--out", "new.json", *COLUMNS),
        ("watch", "batch.csv", "--calibration", "now.json", "--state", "other.json", "--look", "1", *FIRST, *COLUMNS),
        ("show", "now.json", "cal.json"),
    ):
        assert confide_run(*arguments).code in (REFUSED, USAGE)
    page = confide_run("report", "now.json", "--out", "page.html")
    assert page.code == DONE
    text = Path("page.html").read_text(encoding="utf-8")
    assert "No single look and no person is promised anything" in text
    assert "missed minus alpha times all records" in text
    assert "The thresholds in force" in text
