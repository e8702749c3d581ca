"""Bad input: one line on stderr, an exit code, nothing written, nothing overwritten, nothing quoted."""

from pathlib import Path

import pytest

import confide
from confide.cli.exit_codes import EXISTS, REFUSED, USAGE
from tests.files import class_table, classified, write

COLUMNS = ("--probabilities", "p_*", "--label", "name")
LEVELS = ("--alpha", 0.1, "--epsilon", 1)
OUT = ("--out", "new.json")
PLANTED = "planted-4711"


@pytest.fixture
def records(folder: Path) -> Path:
    return write(folder / "records.parquet", class_table())


@pytest.fixture
def released(folder: Path) -> Path:
    confide.calibrate(confide.lac_score(*classified()), 0.1, 1.0, score="lac").save(folder / "cal.json")
    return folder / "cal.json"


@pytest.fixture(autouse=True)
def _nothing_new(folder, request):
    yield
    inputs = {"records.parquet", "cal.json", "bad.parquet", "bad.csv"}
    assert {path.name for path in folder.iterdir()} <= inputs


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--alpha", 1.5, "--epsilon", 1), REFUSED, "--alpha"),
        (("--alpha", "nan", "--epsilon", 1), REFUSED, "--alpha"),
        (("--epsilon", 1), USAGE, "--alpha"),
        (("--alpha", 0.1), REFUSED, "--epsilon"),
        (("--alpha", 0.1, "--epsilon", 1, "--set", "rho=1"), REFUSED, "--epsilon"),
        (("--alpha", 0.1, "--epsilon", "nan"), REFUSED, "--epsilon"),
        (("--alpha", 0.1, "--epsilon", "inf"), REFUSED, "--epsilon"),
        (("--alpha", 0.1, "--epsilon", "one"), USAGE, "--epsilon"),
        ((*LEVELS, "--neighbors", "both"), USAGE, "--neighbors"),
        ((*LEVELS, "--set", "candidates=many"), REFUSED, "candidates"),
        ((*LEVELS, "--set", "candidates=unit:x"), REFUSED, "candidates"),
        ((*LEVELS, "--set", "candidates=unit:-1"), REFUSED, "candidates"),
        ((*LEVELS, "--score", "raps"), REFUSED, "--score"),
        ((*LEVELS, "--n", 100), REFUSED, "--n"),
        ((*LEVELS, "--neighbors", "replace_one", "--n", 0), REFUSED, "--n"),
        (("--alpha", "0.1,0.2", "--epsilon", 1, "--set", "class_weights={cat = 2}"), REFUSED, "class_weights"),
        ((*LEVELS, "--set", "by_class=true", "--set", "partition=ward"), REFUSED, "--ledger"),
        ((*LEVELS, "--set", "by_class=true", "--ledger", "b.db", "--dataset", "d"), REFUSED, "partition"),
        ((*LEVELS, "--out", "missing/new.json"), REFUSED, "--out"),
        ((*LEVELS, "--out", "."), REFUSED, "--out"),
        ((*LEVELS, "--bogus"), USAGE, "--bogus"),
    ],
)
def test_public_choices_are_refused_before_the_data_are_read(confide_run, records, monkeypatch, options, code, says):
    monkeypatch.setattr("confide.tables.files._check_readable", lambda path: pytest.fail("the data were touched"))
    ran = confide_run("calibrate", records, *COLUMNS, *OUT, *options)
    assert ran.refused == (code, says)


def test_columns_have_to_be_named(confide_run, records, released):
    pair = ("--target", "id")
    for options, code, named in (
        ((), REFUSED, "--probabilities"),
        (("--probabilities", "p_*"), REFUSED, "--label"),
        (("--prediction", "id"), REFUSED, "--target"),
        (("--prediction", "id,id,id", *pair), REFUSED, "--prediction"),
        (("--prediction", "p_cat,id", "--score", "aps", "--target", "text"), REFUSED, "--score"),
        (("--prediction", "p_cat,none", *pair), REFUSED, "column"),
    ):
        ran = confide_run("calibrate", records, *options, *LEVELS, *OUT)
        assert ran.refused == (code, named)
    ran = confide_run("predict", records, "--calibration", released, "--out", "s.parquet")
    assert ran.refused == (REFUSED, "--probabilities")
    ran = confide_run("evaluate", records, "--calibration", released)
    assert ran.refused == (REFUSED, "--probabilities")
    assert "id (integers), text (text), p_cat (numbers)" in ran.error


def test_private_values_are_never_printed(confide_run, folder):
    path = folder / "bad.csv"
    for rows in (1, 30_000):
        for last in (f"{PLANTED},a", f"0.5,a,{PLANTED}", f'0.5,"{PLANTED}'):
            path.write_text("s,name\n" + "0.5,a\n" * rows + last + "\n")
            ran = confide_run("calibrate", path, "--score-column", "s", *LEVELS, *OUT)
            assert ran.code == REFUSED
            assert PLANTED not in ran.error


def test_an_output_that_exists(confide_run, records, released):
    before = released.read_bytes()
    made = confide_run("calibrate", records, *COLUMNS, *LEVELS, "--out", released)
    assert made.refused == (EXISTS, "--out")
    arguments = ("predict", records, "--calibration", released, "--probabilities", "p_*", "--out", records)
    assert confide_run(*arguments).code == EXISTS
    assert confide_run(*arguments, "--force").refused == (REFUSED, "--out")
    assert released.read_bytes() == before


def test_a_failed_run_leaves_an_existing_output_alone(confide_run, folder, released):
    before = released.read_bytes()
    path = write(folder / "bad.parquet", {"s": [0.5, None]})
    ran = confide_run("calibrate", path, "--score-column", "s", *LEVELS, "--out", released, "--force")
    assert ran.code == REFUSED
    assert released.read_bytes() == before


def test_an_internal_error_names_only_its_type(confide_run, records, monkeypatch):
    def fail(*arguments: object, **named: object) -> None:
        raise RuntimeError(PLANTED)

    monkeypatch.setattr("confide.tables.TableRequest.release", fail)
    arguments = ("calibrate", records, *COLUMNS, *LEVELS, *OUT)
    ran = confide_run(*arguments)
    assert ran.code == 70
    assert "internal error (RuntimeError)" in ran.error
    assert "CONFIDE_TRACEBACK=1" in ran.error
    assert PLANTED not in ran.error
    monkeypatch.setenv("CONFIDE_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        confide_run(*arguments)


def test_system_errors_show_only_the_systems_text(confide_run, records, monkeypatch):
    def fail(*arguments: object, **named: object) -> None:
        raise OSError(PLANTED)

    monkeypatch.setattr("confide.cli.values.open_table", fail)
    ran = confide_run("calibrate", records, *COLUMNS, *LEVELS, *OUT)
    assert PLANTED not in ran.error
