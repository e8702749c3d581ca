"""Bad inputs and their messages; this file writes the table of docs/bad-input.md.

CONFIDE_WRITE_DOCS=1 python -m pytest tests/test_bad_input.py      writes the table
"""

import csv
import io
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow
import pytest

import confide
from confide import federated
from confide.cli import main
from confide.errors import ConfideError
from confide.ledger import Cost, Dataset, Group, Ledger, compose, fingerprint
from confide.tables import ScoreColumn
from tests.refused import assert_error_is_private, assert_no_private_value, planted_scores, refused
from tests.test_no_private_data import BAD_CALLS

TABLE = Path(__file__).parents[1] / "docs" / "tables" / "bad-input.csv"

HERE = {
    "level that is a word": lambda s, d: confide.calibrate(s, "ten", 1.0),
    "level of 1": lambda s, d: confide.calibrate(s, 1.0, 1.0),
    "level with too many digits": lambda s, d: confide.calibrate(s, 0.3141592653589, 1.0),
    "negative epsilon": lambda s, d: confide.calibrate(s, 0.1, -1.0),
    "infinite epsilon": lambda s, d: confide.calibrate(s, 0.1, np.inf),
    "neither epsilon nor rho": lambda s, d: confide.calibrate(s, 0.1),
    "no scores": lambda s, d: confide.calibrate([], 0.1, 1.0, neighbors="replace_one"),
    "unknown mechanism": lambda s, d: confide.calibrate(s, 0.1, 1.0, mechanism="magic"),
    "groups that overlap: a record in more groups than stated": lambda s, d: confide.calibrate(
        s, 0.1, 1.0, groups=dict.fromkeys(("sex", "age", "site"), ["a"] * len(s)), names={"sex": ["a"], "age": ["a"]}
    ),
    "groups that overlap: a value that is not listed": lambda s, d: confide.calibrate(
        s, 0.1, 1.0, groups=dict.fromkeys(("sex", "age"), ["a"] * len(s)), names={"sex": ["a"], "age": ["b"]}
    ),
    "calibration: empty text": lambda s, d: confide.Release.from_json(""),
    "calibration: other JSON": lambda s, d: confide.Release.from_json('{"a": 1}'),
    "calibration: a megabyte of brackets": lambda s, d: confide.Release.from_json("[" * 10**6),
    "calibration: newer schema": lambda s, d: confide.Release.from_json('{"kind": "confide/release", "schema": 99}'),
    "calibration: altered": lambda s, d: confide.Release.from_json(_altered()),
    "calibration: a folder": lambda s, d: confide.Release.load(d),
    "calibration: a missing file": lambda s, d: confide.Release.load(d / "none.json"),
    "ledger: a folder": lambda s, d: Ledger(d),
    "ledger: in a missing folder": lambda s, d: Ledger(d / "none" / "budget.db"),
    "ledger: missing, only to be read": lambda s, d: Ledger(d / "none.db", create=False),
    "ledger: a text file": lambda s, d: Ledger(_file(d, b"text")),
    "ledger: another program's database": lambda s, d: Ledger(_database(d)),
    "budget_plan: nothing": lambda s, d: confide.budget_plan(3.0),
    "ledger: newer schema": lambda s, d: Ledger(_changed(d, "PRAGMA user_version=4")),
    "ledger: foreign table": lambda s, d: Ledger(_changed(d, "CREATE TABLE t (x)")),
    "ledger: damaged record": lambda s, d: Ledger(_damaged(d)).account("patients"),
    "ledger: over the limit": lambda s, d: confide.calibrate(s, 0.1, 1.0, ledger=_limited(d), dataset="patients"),
    "ledger: no data set named": lambda s, d: confide.calibrate(s, 0.1, 1.0, ledger=_limited(d)),
    "ledger: other relation": lambda s, d: confide.calibrate(
        s, 0.5, 20.0, neighbors="replace_one", ledger=_limited(d), dataset="patients"
    ),
    "ledger: without privacy": lambda s, d: confide.calibrate(
        s, 0.1, mechanism="none", ledger=Ledger(d / "budget.db", limit=1.0), dataset="others"
    ),
    "ledger: unknown data set": lambda s, d: _limited(d).account("unknown"),
    "ledger: name of two lines": lambda s, d: Dataset("two\nlines"),
    "ledger: limit below zero": lambda s, d: _limited(d).set_limit("patients", -1.0),
    "ledger: attach without charge": lambda s, d: _limited(d).attach("0" * 32, "text"),
    "ledger: short key": lambda s, d: fingerprint(b"short", s),
    "cost: negative": lambda s, d: Cost(-1.0, "add_remove", "m"),
    "cost: group under replace-one": lambda s, d: Cost(1.0, "replace_one", "m", None, Group("a", "b")),
    "composition: mixed relations": lambda s, d: compose([Cost(1.0, "add_remove", "m"), Cost(1.0, "replace_one", "m")]),
    "composition: delta of 1": lambda s, d: compose([], 1.0),
    "choose_score: one score": lambda s, d: confide.choose_score({"a": s}, 0.1, 1.0),
    "choose_score: no sizes": lambda s, d: confide.choose_score({"a": s, "b": s}, 0.1, 1.0),
    "choose_score: a share of two thirds": lambda s, d: confide.choose_score(
        {"a": s, "b": s}, 0.1, 1.0, sizes={"a": s[:, None], "b": s[:, None]}, largest_size=1, choice_share="2/3"
    ),
    "choose_score: other lengths": lambda s, d: confide.choose_score({"a": s, "b": s[1:]}, 0.1, 1.0),
    "choose_score: ids without a key": lambda s, d: confide.choose_score(
        {"a": s, "b": s}, 0.1, 1.0, sizes={"a": s[:, None], "b": s[:, None]}, largest_size=1, ids=range(len(s))
    ),
    "published counts: floats": lambda s, d: _published(np.full(64, 9.5)),
    "published counts: a missing bin": lambda s, d: _published(np.full(63, 9)),
    "published counts: another number of records": lambda s, d: _published(np.arange(64) % 5 + 7, 9000),
    "published counts: suppressed": lambda s, d: _published(np.append(np.zeros(48, int), np.arange(90, 106)), 1560),
    "published counts: rounded": lambda s, d: _published(5 * np.arange(64), 10_080),
    "published counts: a scale as an epsilon": lambda s, d: confide.Noise.parse("discrete_laplace(epsilon=1)"),
    "published counts: half a copy": lambda s, d: confide.Noise.discrete_laplace(2.0, copies=0.5),
    "published counts: a law with two peaks": lambda s, d: confide.Noise.table([0.2, 0.4]),
}

COMMANDS = (
    ["show", "FILE"],
    ["calibrate", "FILE", "--score-column", "s", "--alpha", "0.1", "--epsilon", "1", "--out", "new.json"],
    ["calibrate", "FILE", "--score-column", "none", "--alpha", "0.1", "--epsilon", "1", "--out", "new.json"],
    ["calibrate", "none.csv", "--score-column", "s", "--alpha", "0.1", "--epsilon", "1", "--out", "new.json"],
    ["calibrate", "FILE", "--score-column", "s", "--alpha", "2", "--epsilon", "1", "--out", "new.json"],
    ["calibrate", "FILE", "--score-column", "s", "--alpha", "0.1", "--epsilon", "1", "--out", "no/new.json"],
    ["predict", "FILE", "--probabilities", "p_*", "--calibration", "none.json", "--out", "sets.csv"],
    ["ledger", "list", "FILE"],
    ["ledger", "show", "none.db", "patients"],
    ["ledger", "limit", "new.db", "patients", "many"],
    ["nonsense"],
)


def _published(counts, n=None):
    noise = confide.Noise.discrete_laplace(2.0)
    return confide.calibrate_counts(confide.PublishedCounts(counts, confide.Candidates.unit(64), noise, n), 0.1)


def _altered():
    released = confide.calibrate(
        np.random.default_rng(0).random(2000), 0.5, 1.0, candidates=confide.Candidates.unit(20)
    )
    return released.to_json().replace('"1/2"', '"1/3"')


def _file(folder, content):
    (folder / "file").write_bytes(content)
    return folder / "file"


def _database(folder, *statements):
    with closing(sqlite3.connect(folder / "file.db")) as connection:
        for statement in statements or ("CREATE TABLE t (x)",):
            connection.execute(statement)
        connection.commit()
    return folder / "file.db"


def _changed(folder, statement):
    Ledger(folder / "file.db")
    return _database(folder, statement)


def _damaged(folder):
    Ledger(folder / "file.db").set_limit("patients", 1.0)
    with closing(sqlite3.connect(folder / "file.db")) as connection:
        (trigger,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'dataset_update'").fetchone()
    return _database(folder, "DROP TRIGGER dataset_update", "UPDATE dataset SET epsilon = 2", trigger)


def _limited(folder):
    ledger = Ledger(folder / "budget.db")
    ledger.set_limit("patients", 0.5)
    return ledger


def refusals(folder):
    """(what was tried, what the user sees) of every bad call and command."""
    calls = {f"scores: {name}": lambda s, d, call=call: call(s) for name, call in BAD_CALLS.items()} | HERE
    for number, (name, call) in enumerate(calls.items()):
        place = folder / str(number)
        place.mkdir()
        with pytest.raises(ConfideError) as refusal:
            call(planted_scores(60), place)
        assert_error_is_private(refusal.value)
        assert len(str(refusal.value)) < 400
        assert "\n" not in str(refusal.value)
        yield name, f"{type(refusal.value).__name__}: {_plain(str(refusal.value), place)}"


def command_refusals(folder, capfd):
    scores = "\n".join(["s", *map(str, planted_scores(60)), "not a number 123456789"])
    (folder / "private.csv").write_text(scores)
    os.chdir(folder)
    for words in COMMANDS:
        capfd.readouterr()
        code = main([word.replace("FILE", "private.csv") for word in words])
        out, err = capfd.readouterr()
        assert code in (2, 3), words
        assert_no_private_value(out + err)
        assert out == ""
        assert err.count("\n") == 1, err
        yield f"`confide {' '.join(words)}`", f"{_plain(err.strip(), folder)} (exit code {code})"
    assert {path.name for path in folder.iterdir()} == {"private.csv"}


def _plain(text, folder):
    text = text.replace("private.csv", "FILE")
    return re.sub(rf"{re.escape(str(folder))}[^'\"\s;:]*", "FILE", text)


@pytest.mark.slow
def test_the_page_says_what_users_see(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calls").mkdir()
    (tmp_path / "commands").mkdir()
    rows = [*refusals(tmp_path / "calls"), *command_refusals(tmp_path / "commands", capfd)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("tried", "the user sees"), *rows])
    assert_no_private_value(text.getvalue())
    if os.environ.get("CONFIDE_WRITE_DOCS") == "1":
        TABLE.write_text(text.getvalue(), encoding="utf-8")
    assert TABLE.read_text(encoding="utf-8") == text.getvalue(), f"{TABLE} is out of date; see the head of this file"


def test_nothing_is_unpickled_anywhere():
    sources = list(Path(confide.__file__).parent.rglob("*.py"))
    assert sources
    for path in sources:
        text = path.read_text(encoding="utf-8")
        found = re.search(
            r"^\s*(?:import|from)\s+(?:pickle|marshal|shelve|dill|joblib|cloudpickle)\b|allow_pickle=True", text, re.M
        )
        assert found is None, path


SILOS = [federated.SiloKeys.generate(f"clinic {i}").public() for i in range(5)]
CALLS = {
    "budget_plan": lambda **x: confide.budget_plan(1.0, releases=2, **x),
    "plan": lambda **x: federated.plan(SILOS, 0.1, 1.0, **x),
    "compare": lambda **x: federated.compare(SILOS, 0.1, 1.0, **x),
}
WRONG = {"budget_plan": ("evaluation", "evaluations")}


@pytest.mark.parametrize("call", CALLS)
def test_a_name_that_is_no_choice_is_refused(call):
    wrong, near = WRONG.get(call, ("dropout", "dropouts"))
    with refused(confide.errors.InputTypeError, wrong) as caught:
        CALLS[call](**{wrong: 1})
    assert repr(near) in caught.value.remedy


def test_a_watch_refuses_it_before_anything_is_read(tmp_path):
    released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    state = tmp_path / "watch.json"
    with refused(confide.errors.InputTypeError, "batches"):
        records, look = pyarrow.table({"s": [0.1]}), {"state": state, "look": "a", "epsilon": 1.0, "batch": 1}
        confide.watch(records, ScoreColumn("s"), released, **look, batches=2)
    assert not state.exists()
