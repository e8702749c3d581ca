"""`confide evaluate --epsilon`: charged before it is drawn and printed; its options need --epsilon."""

import json

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.cli.exit_codes import REFUSED
from confide.ledger import Ledger
from confide.tables import ClassColumns
from tests.draws import SECURE
from tests.files import write

N = 600
RNG = np.random.default_rng(3)
P = RNG.dirichlet([4, 2, 1], N)
TABLE = pa.table(
    {
        "p_ant": P[:, 0], "p_bee": P[:, 1], "p_cat": P[:, 2],
        "label": np.array(["ant", "bee", "cat"])[(P.cumsum(axis=1) > RNG.random((N, 1))).argmax(axis=1)],
        "ward": np.array(["north", "south", "east"])[np.arange(N) % 3],
        "who": np.arange(N) // 2,
        "visit": np.arange(N) % 2,
    }
)  # fmt: skip
COLUMNS = ("--probabilities", "p_*", "--label", "label")
PAID = ("--ledger", "budget.db", "--dataset", "patients")


@pytest.fixture(scope="module")
def released():
    return confide.calibrate(
        np.linspace(0, 0.9, 2000), 0.1, 10.0, candidates=confide.Candidates.unit(50), score="lac",
        classes=["ant", "bee", "cat"],
    )  # fmt: skip


@pytest.fixture
def records(folder, released):
    released.save(folder / "cal.json")
    return write(folder / "records.parquet", TABLE)


@pytest.fixture
def evaluate(confide_run, records):
    def run(*options, source=records):
        return confide_run("evaluate", source, "--calibration", "cal.json", *COLUMNS, *options)

    return run


@pytest.mark.slow
def test_charge_before_draw_and_repeat_at_no_cost(evaluate, confide_run, draw_with, folder):
    spent = []

    def watched(counts, scale):
        spent.append(Ledger("budget.db").account("patients").spent().epsilon)
        return SECURE.noisy_counts(counts, scale)

    draw_with(noisy_counts=watched)
    asked = ("--epsilon", 1, "--by", "ward", "--groups", "north,south", *PAID)
    one = evaluate(*asked, "--out", "one.json")
    assert one.out.endswith("saved: one.json\nThese numbers are private: they may be published.\n")
    assert set(spent) == {1.0}
    two = evaluate(*asked, "--json").json
    assert two["earlier"] == [Ledger("budget.db").account("patients").entries[0].charged_at]
    assert two["counts"] == json.loads((folder / "one.json").read_text())["counts"]
    wider = evaluate(*asked, "--set", "confidence=0.99", "--json").json
    assert (wider["counts"], wider["confidence"]) == (two["counts"], 0.99)
    other = write(folder / "july.parquet", TABLE.slice(1))
    assert evaluate(*asked, source=other).refused == (REFUSED, "--dataset")
    evaluate(*asked, "--again", source=other)
    assert Ledger("budget.db").account("patients").spent().epsilon == 2
    confide_run("ledger", "limit", "budget.db", "patients", 2.5)
    drawn = len(spent)
    assert evaluate("--epsilon", 1, "--set", "parts=[]", *PAID).refused == (REFUSED, "--dataset")
    assert evaluate("--epsilon", 0.1, "--set", "neighbors=replace_one", *PAID).refused == (REFUSED, "neighbors")
    assert len(spent) == drawn


@pytest.mark.slow
def test_a_calibration_on_the_same_data_is_pointed_out(evaluate, confide_run, records):
    confide_run("calibrate", records, *COLUMNS, "--alpha", 0.1, "--epsilon", 1, "--out", "own.json", *PAID)
    ran = evaluate("--epsilon", 1, *PAID)
    assert ran.code == 0
    assert ran.err.startswith("warning: dataset 'patients' has a calibration in the ledger. If the threshold")
    assert evaluate("--epsilon", 1, "--ledger", "budget.db", "--dataset", "others").err == ""


@pytest.mark.slow
def test_a_page_of_a_private_evaluation_depends_on_noisy_counts_alone(released, draw_with):
    draw_with(noisy_counts=lambda counts, scale: np.full(len(counts), 50))
    pages = [
        confide.report(
            released,
            evaluation=confide.evaluate(
                released, table=TABLE.slice(0, n), what=ClassColumns("p_*", "label"), epsilon=1.0,
                by="ward", group_names=["north", "south"],
            ),
        ).html
        for n in (0, 7, N)
    ]  # fmt: skip
    assert pages[0] == pages[1] == pages[2]
    assert "Measured on labelled records, privately" in pages[0]
