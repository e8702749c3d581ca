"""`confide report`, `plan --out`, `evaluate --out`, `card`: files, and one-line errors."""

import numpy as np
import pytest

from confide.cli.exit_codes import EXISTS, REFUSED
from confide.evaluation import Evaluation
from tests.files import write

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
    assert len(Evaluation.load("ev.json").finding.examples) == 4
    done = confide_run("report", calibrated, "--evaluation", "ev.json", "--title", "Lesions", "--out", "report.html")
    assert done.code == 0
    assert done.out == "saved: report.html\nThe page shows numbers from labelled records: this part is not private.\n"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<h1>Lesions</h1>" in page
    assert "<script>alert(1)" not in page
    assert "confide show cal.json" in page
    assert confide_run("plan", "--alpha", "0.1", "--epsilon", "1", "--n", "800", "--out", "plan.html").code == 0
    assert "With 800 calibration records" in (folder / "plan.html").read_text(encoding="utf-8")
    assert confide_run("report", calibrated, "--out", "report.html").code == 4
    assert confide_run("report", calibrated, "--out", "x.pdf").refused == (REFUSED, "--out")
    assert confide_run("report", calibrated, "--out", "report.html", "--force").out == "saved: report.html\n"
    assert "Measured on labelled" not in (folder / "report.html").read_text(encoding="utf-8")


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
