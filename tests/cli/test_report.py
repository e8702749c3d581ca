"""`confide report`, `plan --out`, `evaluate --out`, `card`: files, and one-line errors."""

import csv

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import EXISTS, REFUSED, USAGE
from confide.evaluation import load_evaluation
from tests.files import write
from tests.reports.pages import federation

COLUMNS = ("--probabilities", "p_*", "--label", "label")


@pytest.fixture
def records(folder):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([6, 2, 1], size=3000)
    names = ["benign", "malignant", "<script>alert(1)</script>"]
    labels = [names[rng.choice(3, p=row)] for row in p]
    return write(folder / "records.csv", {f"p_{name}": p[:, k] for k, name in enumerate(names)} | {"label": labels})


@pytest.fixture
def calibrated(confide_run, records):
    done = confide_run("calibrate", records, *COLUMNS, "--alpha", "0.1", "--epsilon", "1", "--out", "cal.json")
    assert done.code == 0, done.err
    return "cal.json"


@pytest.mark.slow
def test_the_way_from_records_to_a_page(confide_run, calibrated, records, folder):
    done = confide_run("evaluate", records, *COLUMNS, "--calibration", calibrated, "--out", "ev.json", "--examples", 4)
    assert done.code == 0
    assert "saved: ev.json" in done.out
    found = load_evaluation("ev.json")
    assert len(found.examples) == 4
    assert sum(part.n for part in found.classes) == sum(part.n for part in found.sizes) == 3000
    done = confide_run("report", calibrated, "--evaluation", "ev.json", "--title", "Lesions", "--out", "report.html")
    assert done.code == 0
    assert done.out == "saved: report.html\nThe page shows numbers from labelled records: this part is not private.\n"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<h1>Lesions</h1>" in page
    assert "<script>alert(1)" not in page
    assert "confide show cal.json" in page
    assert confide_run("report", calibrated, "--out", "report.html").code == 4
    assert confide_run("report", calibrated, "--out", "x.pdf").refused == (REFUSED, "--out")
    assert confide_run("report", calibrated, "--out", "report.html", "--force").out == "saved: report.html\n"
    assert "Measured on labelled" not in (folder / "report.html").read_text(encoding="utf-8")


def test_evaluation_agrees_with_predict_set(confide_run, calibrated, records):
    confide_run("evaluate", records, *COLUMNS, "--calibration", calibrated, "--out", "ev.json", "--examples", 5)
    found, released = load_evaluation("ev.json"), confide.Calibration.load(calibrated)
    rows = list(csv.reader(records.read_text().splitlines()))
    names = tuple(name.removeprefix("p_") for name in rows[0][:3])
    p, labels = np.array([row[:3] for row in rows[1:]], dtype=float), [row[3] for row in rows[1:]]
    sets = confide.predict_set(p, released, names)
    table = confide.class_coverage(sets, labels)
    for part, n, value, low, high, size in zip(
        found.classes, table.n, table.coverage, table.low, table.high, table.size, strict=True
    ):
        assert (part.n, part.coverage.value, part.mean_size) == (n, value, size)
        assert (part.coverage.low, part.coverage.high) == (low, high)
    sizes = confide.size_coverage(sets, labels, bins=(0, 1, 2, 3))
    for part in found.sizes:
        assert (part.n, part.coverage.value) == (sizes.n[int(part.name)], sizes.coverage[int(part.name)])
    assert [list(one.members) for one in found.examples] == sets.labels()[:5]
    assert [one.truth for one in found.examples] == labels[:5]


@pytest.mark.slow
def test_a_plan_as_a_page(confide_run, folder):
    done = confide_run("plan", "--alpha", "0.1", "--epsilon", "1", "--n", "800", "--out", "plan.html")
    assert done.code == 0
    assert done.out.endswith("saved: plan.html\n")
    assert "--alpha 0.1 --epsilon 1 --out calibration.json" in (folder / "plan.html").read_text(encoding="utf-8")
    again = confide_run("plan", "--alpha", "0.1", "--epsilon", "1", "--out", "plan.html")
    assert again.refused == (EXISTS, "--out")


@pytest.mark.slow
def test_a_federated_page(confide_run, folder):
    joined, more = federation(folder)
    joined.save("joined.json")
    options = []
    for i, text in enumerate(more["answers"]):
        (folder / f"answer {i}.json").write_text(text)
        options += ["--answer", f"answer {i}.json"]
    done = confide_run("report", "joined.json", *options, "--out", "report.html")
    assert done.code == 0, done.err
    assert (folder / "report.html").read_text(encoding="utf-8") == confide.report(
        joined, file_name="joined.json", **more
    ).html


@pytest.mark.slow
def test_show_reads_releases_of_several_thresholds(confide_run, folder):
    scores = np.linspace(0, 1, 3000)
    released = confide.calibrate_levels(scores, [0.2, 0.1], epsilon=1.0)
    released.save("levels.json")
    done = confide_run("show", "levels.json", "--records", 2)
    assert done.out.startswith(str(released))
    assert "2 records replaced" in done.out
    text = (folder / "levels.json").read_text().replace('"epsilon": 1.0', '"epsilon": 0.5', 1)
    (folder / "levels.json").write_text(text)
    assert confide_run("show", "levels.json").refused == (REFUSED, "--calibration")


def test_refusals(confide_run, calibrated, records, folder):
    assert confide_run("report", "nothing.json", "--out", "r.html").refused == (REFUSED, "path")
    assert confide_run("report", calibrated, "--out", "no/r.html").refused == (REFUSED, "--out")
    (folder / "ev.json").write_text("{}")
    assert confide_run("report", calibrated, "--evaluation", "ev.json", "--out", "r.html").refused == (REFUSED, "file")
    assert confide_run("report", calibrated, "--answer", "ev.json", "--out", "r.html").refused == (REFUSED, "--answer")
    assert confide_run("report", calibrated, "--title", "", "--out", "r.html").refused == (REFUSED, "--title")
    plain = ("evaluate", records, *COLUMNS, "--calibration", calibrated, "--examples", 3)
    assert confide_run(*plain).refused == (USAGE, "--examples")
    assert not (folder / "r.html").exists()


@pytest.mark.slow
def test_a_page_contains_the_ledgers_charges(confide_run, records, folder):
    charged = ("--ledger", "budget.db", "--dataset", "patients", "--alpha", "0.1")
    for epsilon, name in (("0.5", "first.json"), ("1", "second.json")):
        done = confide_run("calibrate", records, *COLUMNS, *charged, "--epsilon", epsilon, "--out", name)
        assert done.code == 0, done.err
    assert confide_run("report", "second.json", "--ledger", "budget.db", "--out", "report.html").code == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<dt>Spent before this release</dt><dd>ε = 0.5</dd>" in page
    assert "<dt>Spent with it</dt><dd>ε = 1.5</dd>" in page
    assert confide_run("report", "second.json", "--ledger", "budget.db", "--out", "budget.db", "--force").code != 0
    assert _of_another_ledger(confide_run).refused == (REFUSED, "--ledger")


def _of_another_ledger(confide_run):
    assert confide_run("ledger", "limit", "other.db", "patients", "3").code == 0
    return confide_run("report", "second.json", "--ledger", "other.db", "--out", "page.html")


@pytest.mark.slow
def test_a_card(confide_run, calibrated, records, folder):
    confide_run("evaluate", records, *COLUMNS, "--calibration", calibrated, "--out", "ev.json")
    confide_run("evaluate", records, *COLUMNS, "--calibration", calibrated, "--epsilon", 1, "--out", "private.json")
    done = confide_run("card", calibrated, "--evaluation", "ev.json", "--title", "Lesions", "--out", "README.md")
    assert done.out == ("saved: README.md\nThe card shows numbers from labelled records: this part is not private.\n")
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "# Lesions" in text
    assert "private: false" in text
    assert confide_run("card", calibrated, "--evaluation", "private.json", "--out", "README.md").code == EXISTS
    done = confide_run(
        "card", calibrated, "--evaluation", "private.json", "--task", "t", "--out", "README.md", "--force"
    )
    assert done.out == "saved: README.md\nThe card shows a private evaluation: the whole card may be published.\n"
    assert "private: true" in (folder / "README.md").read_text(encoding="utf-8")
    for out in ("card.txt", "card"):
        assert confide_run("card", calibrated, "--out", out).refused == (REFUSED, "--out")
