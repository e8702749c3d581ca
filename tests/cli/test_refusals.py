"""Bad input: one line on stderr, an exit code, nothing written, nothing overwritten, nothing quoted."""

from pathlib import Path

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import EXISTS, REFUSED, USAGE
from tests.files import NAMES, class_table, classified, write

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
    made = {path.name for path in folder.iterdir()} - {
        "records.parquet",
        "cal.json",
        "bad.parquet",
        "bad.csv",
        "other.json",
    }
    assert made == set()


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--alpha", 1.5, "--epsilon", 1), REFUSED, "--alpha must lie strictly between 0 and 1; found '1.5'"),
        (("--alpha", 0, "--epsilon", 1), REFUSED, "--alpha must lie strictly between 0 and 1"),
        (("--alpha", "nan", "--epsilon", 1), REFUSED, "--alpha must be a finite number"),
        (("--alpha", "ten", "--epsilon", 1), REFUSED, "--alpha must be a finite number"),
        (("--epsilon", 1), USAGE, "Missing option '--alpha'"),
        (("--alpha", 0.1), REFUSED, "--epsilon or --rho must be given"),
        (("--alpha", 0.1, "--epsilon", 1, "--rho", 1), REFUSED, "--epsilon or --rho must be given, and not both"),
        (("--alpha", 0.1, "--epsilon", "nan"), REFUSED, "--epsilon must be a positive, finite number"),
        (("--alpha", 0.1, "--epsilon", "inf"), REFUSED, "--epsilon must be a positive, finite number"),
        (("--alpha", 0.1, "--epsilon", -1), REFUSED, "--epsilon must be a positive, finite number"),
        (("--alpha", 0.1, "--epsilon", "one"), USAGE, "'one' is not a valid float"),
        ((*LEVELS, "--delta", 2), REFUSED, "--delta must lie strictly between 0 and 1"),
        ((*LEVELS, "--neighbors", "both"), USAGE, "'both' is not one of"),
        ((*LEVELS, "--selector", "best"), USAGE, "'best' is not one of"),
        ((*LEVELS, "--n-min", 0), REFUSED, "--n-min must be a positive integer"),
        ((*LEVELS, "--records-per-person", 0), REFUSED, "--records-per-person must be a positive integer"),
        ((*LEVELS, "--candidates", "many"), REFUSED, "--candidates must have one of the forms"),
        ((*LEVELS, "--candidates", "unit:x"), REFUSED, "size must be an integer; found 'x'"),
        ((*LEVELS, "--candidates", "unit:10:even"), REFUSED, "spacing must be one of"),
        ((*LEVELS, "--candidates", "sinh:-1"), REFUSED, "unit must be a positive"),
        ((*LEVELS, "--score", "mine"), USAGE, "--score must be one of lac, aps, raps, saps, margin, top_k with"),
        ((*LEVELS, "--score", "raps"), REFUSED, "--score must name its parameters as raps(penalty=...,k_reg=...)"),
        ((*LEVELS, "--n", 100), REFUSED, "--n must be left out with --neighbors add_remove"),
        ((*LEVELS, "--neighbors", "replace_one", "--n", 0), REFUSED, "--n must be a positive integer"),
        (("--alpha", "0.1,0.2", "--epsilon", 1, "--class-weights", "cat=2"), USAGE, "give one level in --alpha"),
        ((*LEVELS, "--by-class", "--partition", "ward"), USAGE, "--partition needs --ledger"),
        ((*LEVELS, "--by-class", "--ledger", "b.db", "--dataset", "d"), USAGE, "belongs to --ledger; give both"),
        ((*LEVELS, "--out", "missing/new.json"), REFUSED, "its folder does not exist"),
        ((*LEVELS, "--out", "."), REFUSED, "is a folder"),
        ((*LEVELS, "--bogus"), USAGE, "No such option"),
    ],
)
def test_public_choices_are_refused_before_the_data_are_read(confide_run, records, monkeypatch, options, code, says):
    monkeypatch.setattr("confide.tables.files._check_readable", lambda path: pytest.fail("the data were touched"))
    ran = confide_run("calibrate", records, *COLUMNS, *OUT, *options)
    assert says in ran.error
    assert ran.code == code


def test_columns_have_to_be_named(confide_run, records, released):
    error = confide_run("calibrate", records, *LEVELS, *OUT).error
    assert "--probabilities with --label, --prediction with --target, or --score-column" in error
    assert "its columns are id (integers), text (text), p_cat (numbers)" in error
    error = confide_run("calibrate", records, "--probabilities", "p_*", *LEVELS, *OUT).error
    assert error.startswith("--probabilities needs --label")
    error = confide_run("calibrate", records, "--prediction", "id", *LEVELS, *OUT).error
    assert error.startswith("--prediction needs --target")
    pair = ("--target", "id", *LEVELS, *OUT)
    error = confide_run("calibrate", records, "--prediction", "id,id,id", *pair).error
    assert error.startswith("--prediction names one column, or two, LOWER,UPPER; found 3")
    error = confide_run("calibrate", records, "--prediction", "p_cat,id", "--score", "aps", *pair).error
    assert (
        "--score must be left out, or be one of cqr, cqr_low, cqr_high, cqr_sides, with --prediction LOWER,UPPER"
        in error
    )
    error = confide_run("calibrate", records, "--prediction", "p_cat,none", *pair).error
    assert "'none'" in error
    assert "its columns are" in error
    error = confide_run("predict", records, "--calibration", released, "--out", "s.parquet").error
    assert "by --probabilities or --prediction; its columns are" in error
    error = confide_run("evaluate", records, "--calibration", released).error
    assert "its columns are" in error


def test_columns_that_are_not_there(confide_run, records):
    ran = confide_run("calibrate", records, "--probabilities", "p_*", "--label", "truth", *LEVELS, *OUT)
    assert ran.code == REFUSED
    assert "column 'truth' is not in" in ran.error
    assert "its columns are id (integers)" in ran.error
    assert (
        "it matches 0"
        in confide_run("calibrate", records, "--probabilities", "q*", "--label", "name", *LEVELS, *OUT).error
    )


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ([0.5, float("nan"), float("nan")], "2 do not, the first is row 1"),
        ([0.5, 0.5, None], "1 does not, row 2"),
        ([0.5, float("-inf"), 0.5], "1 does not, row 1"),
    ],
)
def test_bad_scores(confide_run, folder, scores, says):
    path = write(folder / "bad.parquet", {"s": scores})
    ran = confide_run("calibrate", path, "--score-column", "s", *LEVELS, *OUT)
    assert says in ran.error
    assert ran.code == REFUSED


def test_private_values_are_never_printed(confide_run, folder):
    path = folder / "bad.csv"
    for rows in (1, 30_000):
        for last in (f"{PLANTED},a", f"0.5,a,{PLANTED}", f'0.5,"{PLANTED}'):
            path.write_text("s,name\n" + "0.5,a\n" * rows + last + "\n")
            ran = confide_run("calibrate", path, "--score-column", "s", *LEVELS, *OUT)
            assert ran.code == REFUSED
            assert PLANTED not in ran.error


@pytest.mark.parametrize("content", [b"", b"PAR1", b"hello, world\n" * 50])
def test_damaged_files(confide_run, folder, content):
    path = folder / "bad.parquet"
    path.write_bytes(content)
    ran = confide_run("calibrate", path, *COLUMNS, *LEVELS, *OUT)
    assert ran.code == REFUSED
    assert "bad.parquet" in ran.error


def test_truncated_and_missing_files(confide_run, records):
    records.write_bytes(records.read_bytes()[:-100])
    ran = confide_run("calibrate", records, *COLUMNS, *LEVELS, *OUT)
    assert "it is truncated, damaged or not a Parquet file" in ran.error
    assert "does not exist" in confide_run("calibrate", "nowhere.csv", *COLUMNS, *LEVELS, *OUT).error
    assert "must end in one of .parquet" in confide_run("calibrate", "nowhere.xlsx", *COLUMNS, *LEVELS, *OUT).error


def test_an_output_that_exists(confide_run, records, released):
    before = released.read_bytes()
    made = confide_run("calibrate", records, *COLUMNS, *LEVELS, "--out", released)
    assert made.code == EXISTS
    assert made.error.endswith("exists already; choose another name or give --force")
    arguments = ("predict", records, "--calibration", released, "--probabilities", "p_*", "--out", records)
    assert confide_run(*arguments).code == EXISTS
    assert "would replace the input" in confide_run(*arguments, "--force").error
    assert released.read_bytes() == before


def test_a_failed_run_leaves_an_existing_output_alone(confide_run, folder, released):
    before = released.read_bytes()
    path = write(folder / "bad.parquet", {"s": [0.5, None]})
    ran = confide_run("calibrate", path, "--score-column", "s", *LEVELS, "--out", released, "--force")
    assert ran.code == REFUSED
    assert released.read_bytes() == before


def test_a_calibration_for_another_score(confide_run, records, released):
    ran = confide_run("predict", records, "--calibration", released, "--prediction", "id", "--out", "s.parquet")
    assert "was made for the score 'lac', and --prediction gives the score 'absolute_residual'" in ran.error
    assert ran.error.endswith("name the columns with --probabilities")
    assert ran.code == REFUSED
    confide.calibrate(np.linspace(0, 1, 5000), 0.1, 1.0).save("other.json")
    ran = confide_run("predict", records, "--calibration", "other.json", "--prediction", "id,id", "--out", "s.csv")
    assert ran.error.endswith("calibrate with --score NAME, or compare your own scores with its threshold")
    confide.calibrate(np.linspace(0, 1, 5000), 0.1, 1.0, score="mine").save("other.json", overwrite=True)
    for command in (("predict", records, "--out", "s.parquet"), ("evaluate", records, "--label", "label")):
        ran = confide_run(*command, "--calibration", "other.json", "--probabilities", "p_*")
        assert "was made for the score 'mine'" in ran.error


def test_calibrations_that_are_none(confide_run, records, folder):
    arguments = ("predict", records, "--probabilities", "p_*", "--out", "s.parquet", "--calibration")
    assert "cannot be read" in confide_run(*arguments, "nowhere.json").error
    (folder / "other.json").write_text("{}")
    assert "not a confide calibration" in confide_run(*arguments, "other.json").error
    assert "is not a text file" in confide_run(*arguments, records).error
    assert "not a confide calibration" in confide_run("show", "other.json").error
    assert "--records must be a positive integer" in confide_run("show", "other.json", "--records", 0).error


def test_labels_outside_the_classes(confide_run, folder, released):
    p, y = classified()
    y[1234] = 3
    path = write(folder / "bad.parquet", {f"p_{name}": p[:, k] for k, name in enumerate(NAMES)} | {"label": y})
    says = "the position of a class, 0 to 2, in every row; 1 does not, row 1234 "
    columns = ("--probabilities", "p_*", "--label", "label", "--label-positions")
    assert says in confide_run("calibrate", path, *columns, *LEVELS, *OUT).error
    assert says in confide_run("evaluate", path, "--calibration", released, *columns).error


def test_outputs_that_cannot_be_written(confide_run, records, released):
    arguments = ("predict", records, "--calibration", released, "--probabilities", "p_*", "--out")
    assert "must end in one of .parquet" in confide_run(*arguments, "sets.xlsx").error
    assert "its folder does not exist" in confide_run(*arguments, "missing/sets.csv").error
    assert "column 'p' holds lists, which a CSV cell cannot" in confide_run(*arguments, "sets.csv").error


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


def test_an_error_of_the_system_names_no_more_than_the_system_says(confide_run, records, monkeypatch):
    def fail(*arguments: object, **named: object) -> None:
        raise OSError(PLANTED)

    monkeypatch.setattr("confide.cli.values.open_table", fail)
    ran = confide_run("calibrate", records, *COLUMNS, *LEVELS, *OUT)
    assert PLANTED not in ran.error
