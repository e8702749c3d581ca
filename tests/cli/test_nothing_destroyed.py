"""`--force` replaces outputs of the same kind and nothing else; no part of a cut file stays."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.cli.exit_codes import EXISTS, REFUSED
from confide.cli.output import check_output
from confide.federated import Policy, SiloKeys
from confide.federated.messages import sign
from confide.ledger import Ledger
from confide.reports.page import page_of
from confide.support import FileKind, OutputExistsError, Section, kind_of
from confide.tables import ClassColumns, predict_table
from confide.tables.predict import kind_of_table
from tests.files import class_table, write
from tests.kept import path_of
from tests.refused import refused

COLUMNS = ("--probabilities", "p_*", "--label", "name")
ASKED = (*COLUMNS, "--alpha", 0.2, "--epsilon", 1000)
RECORDS = class_table(60, lists=False)
SETS = pa.table({"id": [1], "prediction_set": ['["cat"]'], "set_size": [1]})


KEYS = SiloKeys.generate("north")


def _ledger(path: Path) -> None:
    Ledger(path).set_limit("patients", 1.0)


def _database(path: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")


MADE = {
    "release": (FileKind.RELEASE, "r.json", path_of("levels")),
    "federated": (FileKind.RELEASE, "f.json", path_of("federated")),
    "evaluation": (FileKind.EVALUATION, "e.json", path_of("sets")),
    "page": (FileKind.PAGE, "p.html", lambda path: page_of(Section("Triage")).save(path)),
    "card": (FileKind.CARD, "README.md", "---\n# Written by confide\ntags: []\n---\n"),
    "notes in Markdown": (FileKind.OTHER, "o.md", "---\ntags: []\n---\n"),
    "export": (FileKind.EXPORT, "x.json", '{"kind": "confide/ledger", "schema": 1, "datasets": []}'),
    "plan": (FileKind.PLAN, "plan.json", path_of("federated-plan")),
    "answer": (FileKind.ANSWER, "answer.json", sign("answer", {}, KEYS.signing)),
    "silo": (FileKind.SILO, "silo.json", KEYS.public().to_json()),
    "policy": (FileKind.POLICY, "policy.json", Policy("00" * 32, 1.0, 1.0).to_json()),
    "keys": (FileKind.KEYS, "north.key", KEYS.save),
    "ledger": (FileKind.LEDGER, "budget.db", _ledger),
    "sets": (FileKind.PREDICTIONS, "sets.csv", lambda path: write(path, SETS)),
    "packed sets": (FileKind.PREDICTIONS, "sets.parquet", lambda path: write(path, SETS)),
    "intervals": (FileKind.PREDICTIONS, "i.arrow", lambda path: write(path, {"lower_0.1": [0.5], "upper_0.1": [1.5]})),
    "records": (FileKind.TABLE, "records.csv", lambda path: write(path, RECORDS)),
    "quantiles": (FileKind.TABLE, "q.csv", lambda path: write(path, {"lower": [0.5], "upper": [0.6], "y": [0.5]})),
    "other pair": (FileKind.TABLE, "o.parquet", lambda path: write(path, {"lower_0.1": [0.5], "upper_0.2": [1.5]})),
    "case": (FileKind.TABLE, "c.parquet", lambda path: write(path, {"lowercase": ["a"], "uppercase": ["A"]})),
    "database": (FileKind.OTHER, "other.db", _database),
    "notes": (FileKind.OTHER, "notes.txt", "of another user"),
    "page of others": (FileKind.OTHER, "o.html", "<!doctype html><title>confide</title>"),
    "strange": (FileKind.OTHER, "s.csv.gz", "\0\0\0"),
}
OF_ROWS = (FileKind.PREDICTIONS, FileKind.TABLE)
WRITTEN = [kind for kind in FileKind if kind not in (*OF_ROWS, FileKind.EMPTY, FileKind.OTHER)]


def make(folder: Path, name: str) -> Path:
    _, file, content = MADE[name]
    path = folder / file
    if isinstance(content, Path):
        shutil.copy(content, path)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        content(path)
    return path


@pytest.mark.parametrize("name", MADE)
def test_every_output_over_every_file(folder, name):
    """Only an output of the same kind may replace a file."""
    path, kind = make(folder, name), MADE[name][0]
    before = path.read_bytes()
    assert kind_of_table(path) == kind
    for written in (*WRITTEN, FileKind.PREDICTIONS):
        with refused(OutputExistsError, "output"):
            check_output(path, written, force=False)
        if written is kind:
            check_output(path, written, force=True)
            continue
        with refused(confide.errors.InputError, "output") as caught:
            check_output(path, written, force=True)
        found = kind_of(path) if kind in OF_ROWS and written is not FileKind.PREDICTIONS else kind
        assert f"is {found}, and {written} " in caught.value.requirement
    assert path.read_bytes() == before


def test_empty_files_and_devices_may_be_written(folder):
    (folder / "empty").touch()
    for written in WRITTEN:
        check_output(folder / "empty", written, force=True)
    with refused(confide.errors.InputError, "output"):
        check_output(Path("/dev/null"), FileKind.RELEASE, force=True)


@pytest.fixture
def there(folder):
    """Records, a release, its evaluation and a ledger."""
    write(folder / "records.parquet", class_table(600, lists=False))
    write(folder / "part-1.csv", RECORDS)
    confide.calibrate(np.linspace(0, 1, 3000), 0.1, 1.0, score="lac").save("cal.json")
    make(folder, "evaluation")
    Ledger("budget.db").set_limit("patients", 2000.0)
    os.link("records.parquet", "hard.parquet")
    Path("soft.csv").symlink_to("part-1.csv")
    Path("new.db").symlink_to("to-come.db")
    return folder


CALIBRATE, PREDICT = ("calibrate", "records.parquet", *ASKED), ("--probabilities", "p_*", "--calibration", "cal.json")
OUTPUTS = ("output", "--out", "--keys", "--public", "--plan", "--state")
DESTROYING = {
    "calibrate over its own records": (*CALIBRATE, "--out", "records.parquet"),
    "by another path": (*CALIBRATE, "--out", "../{folder}/records.parquet"),
    "by a hard link": (*CALIBRATE, "--out", "hard.parquet"),
    "by a symbolic link": ("calibrate", "part-1.csv", *ASKED, "--out", "soft.csv"),
    "a file of the pattern": ("calibrate", "part-*.csv", *ASKED, "--out", "part-1.csv"),
    "calibrate over its ledger": (
        *CALIBRATE, "--ledger", "budget.db", "--dataset", "patients", "--out", "budget.db",
    ),
    "over the ledger to be made": (*CALIBRATE, "--ledger", "to-come.db", "--dataset", "p", "--out", "to-come.db"),
    "over a ledger of others": (*CALIBRATE, "--out", "budget.db"),
    "predict over its records": ("predict", "part-1.csv", *PREDICT, "--out", "soft.csv"),
    "predict over other records": ("predict", "records.parquet", *PREDICT, "--out", "part-1.csv"),
    "predict over the ledger, renamed": ("predict", "part-1.csv", *PREDICT, "--out", "ledger.csv"),
    "evaluate over its records": ("evaluate", "part-1.csv", *COLUMNS, *PREDICT[2:], "--out", "part-1.csv"),
    "evaluate over the release": ("evaluate", "part-1.csv", *COLUMNS, *PREDICT[2:], "--out", "cal.json"),
    "report over its release": ("report", "cal.json", "--out", "cal.json"),
    "card over its release": ("card", "cal.json", "--out", "cal.json"),
    "report over its evaluation": ("report", "cal.json", "--evaluation", "e.json", "--out", "e.json"),
    "export over its ledger": ("ledger", "export", "budget.db", "--out", "budget.db"),
    "a request over a release": ("request", "--out", "cal.json"),
    "a plan over a release": ("plan", "--alpha", 0.1, "--epsilon", 1, "--out", "cal.json"),
}  # fmt: skip


def test_no_command_destroys_what_it_reads_or_a_file_of_another_kind(confide_run, there):
    """A one-line error before any work: nothing is changed, charged or created."""
    shutil.copy("budget.db", "ledger.csv")
    before = {path.name: path.read_bytes() for path in there.iterdir() if path.exists()}
    for what, words in DESTROYING.items():
        ran = confide_run(*(str(word).format(folder=there.name) for word in words), "--force")
        assert ran.refused[0] == REFUSED, what
        assert ran.refused[1] in OUTPUTS, what
        assert {path.name: path.read_bytes() for path in there.iterdir() if path.exists()} == before, what


@pytest.mark.slow
def test_federated_commands_spare_their_files(confide_run, folder):
    for name in ("north", "coordinator"):
        keys = ("--keys", f"{name}.key", "--public", f"{name}.json")
        assert confide_run("federated", "keygen", name, *keys, "--size", 300).code == 0
    write(folder / "north.csv", {"s": [0.5] * 300})
    plan = ("federated", "plan", "--silo", "north.json", "--keys", "coordinator.key", "--alpha", 0.1, "--epsilon", 2)
    assert confide_run(*plan, "--out", "plan.json").code == 0
    with_budget = ("--ledger", "north.db", "--budget", 4)
    answer = ("federated", "answer", "north.csv", "--score-column", "s", "--plan", "plan.json", "--keys", "north.key",
              "--coordinator", "coordinator.json", *with_budget)  # fmt: skip
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    aggregate = ("federated", "aggregate", "plan.json", "--plan", "plan.json")
    for words, out in (
        (plan, "coordinator.key"),
        (answer, "north.key"),
        (answer, "north.csv"),
        (aggregate, "plan.json"),
    ):
        assert confide_run(*words, "--out", out, "--force").refused == (REFUSED, "--out"), (words, out)
    keygen = ("federated", "keygen", "other", "--keys", "other", "--public", "other")
    assert confide_run(*keygen).refused[1] in OUTPUTS
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.slow
def test_earlier_outputs_are_replaced(confide_run, there):
    """Also sets of another program, which are recognised by their last columns."""
    assert confide_run(*CALIBRATE, "--out", "cal.json").code == EXISTS
    assert confide_run(*CALIBRATE, "--out", "cal.json", "--force").code == 0
    for name in ("sets.csv", "sets.parquet"):
        write(there / name, SETS)
        assert confide_run("predict", "part-1.csv", *PREDICT, "--out", name).code == EXISTS
        assert confide_run("predict", "part-1.csv", *PREDICT, "--out", name, "--force").code == 0
    for words in (("ledger", "export", "budget.db", "--out", "b.json"), ("request", "--out", "r.toml")):
        assert [confide_run(*words).code, confide_run(*words).code] == [0, EXISTS]
        assert confide_run(*words, "--force").code == 0


@pytest.mark.slow
def test_python_spares_files_of_another_kind(there):
    released = confide.Release.load("cal.json")
    with refused(confide.errors.InputError, "output"):
        released.save("budget.db", overwrite=True)
    table = pa.table({"p_a": [0.5], "p_b": [0.5], "x": [1]})
    write(there / "s.parquet", SETS)
    Path("sets").mkdir()
    write(
        there / "sets" / "one.parquet",
        table.append_column("prediction_set", pa.array([["a"]])).append_column("set_size", pa.array([1])),
    )
    os.link("sets/one.parquet", "linked.parquet")
    for out in ("sets/one.parquet", "linked.parquet"):
        with refused(confide.errors.InputError, "output"):
            predict_table("sets", ClassColumns("p_*"), released, out, keep=["x"], overwrite=True)
    assert predict_table(table, ClassColumns("p_*"), released, "s.parquet", keep=["x"], overwrite=True)["rows"] == 1


CONFIDE = str(Path(sys.executable).parent / "confide")
CASES = {
    "keys": (100, "--keys", "federated keygen north --keys north.key --public north.json"),
    "public file": (300, "--public", "federated keygen north --keys north.key --public north.json"),
    "ledger": (4096, "ledger", "ledger limit new.db patients 3"),
    "policy": (100, "--out", "federated policy --coordinator c.json --budget 3 --out policy.json"),
}


def run(words, limit=resource.RLIM_INFINITY):
    """A command that can write files of `limit` bytes."""
    return subprocess.run(
        [CONFIDE, *words.split()],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)),
    )


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_a_file_that_is_cut_short_does_not_stay(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    limit, option, words = CASES[case]
    if case == "policy":
        assert run("federated keygen c --keys c.key --public c.json").returncode == 0
    before = sorted(path.name for path in Path().iterdir())
    failed = run(words, limit)
    assert failed.returncode == 3
    assert failed.stderr.startswith(f"error: {option}: ")
    after = sorted(path.name for path in Path().iterdir())
    if case == "public file":  # the keys are whole, and `federated public` issues the file
        assert after == ["north.key"]
        words = "federated public --keys north.key --out north.json"
    else:
        assert after == before
    assert run(words).returncode == 0
