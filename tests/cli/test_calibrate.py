"""`confide calibrate`: requests as files, choices among models, groups, the public number, and records left out."""

import re
import tomllib
from inspect import signature
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide import federated
from confide.cli.exit_codes import DONE, REFUSED
from confide.cli.options import NAMES
from confide.cli.request_file import written_request
from confide.core import load_release
from confide.ledger import Ledger
from confide.tables.calibrate import TableOptions
from tests.draws import always
from tests.files import class_table, classified, write

PLAIN = ("--alpha", 0.1, "--epsilon", 1)
COLUMNS = ("--probabilities", "p_*", "--label", "name")
PAID = ("--ledger", "l.db", "--dataset", "d")


@pytest.fixture
def records(folder):
    """Records with the probabilities of a good model, p_*, and of another one, q_*, for other records."""
    table = class_table(lists=False)
    for name in [name for name in table.column_names if name.startswith("p_")]:
        table = table.append_column(name.replace("p_", "q_"), [np.roll(table[name].to_numpy(), 7)])
    return write(folder / "records.parquet", table)


# Requests as files


def test_a_written_request_has_every_argument_of_calibrate_table_with_a_sentence():
    lines = written_request().splitlines()
    stated = [(before, line) for before, line in pairwise(lines) if re.match(r"#[\w.]+ =", line)]
    assert {re.split("[ .]", line[1:])[0] for _, line in stated} == NAMES
    assert all(before.startswith("# ") for before, _ in stated)
    assert tomllib.loads(written_request()) == {}
    explicit = set(signature(confide.tables.calibrate_table).parameters)
    elsewhere = {"source", "what", "progress", "options", "ledger", "dataset", "again", "chosen"}
    assert {*explicit, *TableOptions.__optional_keys__} - elsewhere <= NAMES


def test_a_file_serves_plan_and_calibrate(confide_run, folder, records):
    (folder / "r.toml").write_text(
        'probabilities = "p_*"\nlabel = "name"\nalpha = 0.1\nepsilon = 1.0\ndelta = 0.05\nabout = {date = 2026-11-29}\n'
    )
    made = confide_run("calibrate", records, "--request", "r.toml", "--out", "cal.json")
    assert made.code == DONE, made.err
    released = load_release("cal.json")
    assert (released.about["date"], released.score) == ("2026-11-29", "lac")
    assert "with probability 0.95 over the calibration data" in made.out
    typed = confide_run("plan", *COLUMNS, *PLAIN, "--set", "delta=0.05", "--n", 500, "--json").json
    assert confide_run("plan", "--request", "r.toml", "--n", 500, "--json").json == typed
    assert typed["guarantee"]["delta"] == 0.05
    grouped = confide_run("plan", "--request", "r.toml", "--by", "ward", "--groups", "a,b", "--n", 500)
    assert grouped.out.startswith("for each group or class, with 500 records in it:\npromise: ")


# A private choice among scores and models


@pytest.mark.slow
def test_model_is_chosen_and_the_release_is_verified(confide_run, records):
    options = (*COLUMNS, "--alpha", 0.1, "--epsilon", 2, "--set", "choose=lac,q_*:lac", *PAID)
    made = confide_run("calibrate", records, *options, "--out", "cal.json")
    assert made.code == 0, made.err
    released = confide.Release.load("cal.json")
    assert released.chosen.among == ("lac", "q_*:lac")
    assert (released.chosen.name, released.score) == ("lac", "lac")  # otherwise with probability below 1e-10
    assert (
        "'lac', chosen among 2 (lac, q_*:lac) by the mean size, each at most 3, on a share of "
        "1/5 of the records, at epsilon 2" in made.out
    )
    assert Ledger("l.db").account("d").spent().epsilon == 2.0
    assert confide_run("verify", "cal.json").code == 0


@pytest.mark.slow(unless="records_per_person-0")
@pytest.mark.parametrize(("name", "value"), [("n_min", 10**15), ("records_per_person", 0)])
def test_threshold_that_cannot_be_released_is_found_before_the_choice_is_charged(confide_run, records, name, value):
    asked = (*COLUMNS, *PLAIN, "--set", "choose=lac,aps_deterministic", "--set", f"{name}={value}", *PAID)
    done = confide_run("calibrate", records, *asked, "--out", "cal.json")
    assert (done.code, name in done.err) == (REFUSED, True)
    assert not Ledger("l.db").accounts()


@pytest.mark.slow
def test_records_that_are_incomplete_for_one_model_are_left_out_for_all(confide_run, folder, monkeypatch):
    """Every model has the scores of the same records: those with values for all models."""
    chosen = []

    def choosing(scores, *args, **how):
        chosen.append((scores, how["sizes"]))
        return confide.choose_score(scores, *args, **how)

    monkeypatch.setattr("confide.cli.calibrate.choose_score", choosing)
    rng = np.random.default_rng(0)
    models = {"p": rng.random(9).tolist(), "q": rng.random(9).tolist()}
    models["p"][3], models["q"][4] = None, None
    labels, columns = ["a", "b", "b"] * 3, {}
    for letter, shares in models.items():
        columns |= {f"{letter}_a": shares, f"{letter}_b": [None if x is None else 1 - x for x in shares]}
    records = write(folder / "records.parquet", pa.table(columns | {"name": labels}))
    options = (*COLUMNS, *PLAIN, "--set", "choose=lac,q_*:lac,aps_deterministic", "--out", "cal.json")
    refused = confide_run("calibrate", records, *options)
    assert refused.code == REFUSED
    for name, row in (("p_a", 3), ("q_a", 4)):
        assert refused.err.count(f"column {name!r}") == 1
        assert f"1 does not, row {row}" in refused.err
    made = confide_run("calibrate", records, *options, "--set", "skip_incomplete=true")
    assert made.code == 0, made.err
    ((scores, sizes),) = chosen
    for name, letter in (("lac", "p"), ("q_*:lac", "q")):
        expected = [1 - columns[f"{letter}_{labels[row]}"][row] for row in (0, 1, 2, 5, 6, 7, 8)]
        assert scores[name] == pytest.approx(expected, abs=1e-15)
    assert [sizes[name].shape for name in scores] == [(7, 2)] * 3


# The number of records, and records with missing values


@pytest.mark.long
def test_left_out_records_are_counted_only_where_n_is_public(confide_run, folder):
    n, holes, skip = 600, 7, ("--set", "skip_incomplete=true")
    p, y = classified(n, dtype=np.float64)
    p[3 : 3 + holes, 1] = np.nan
    columns = {f"p_{k}": p[:, k] for k in range(3)} | {"name": y}
    records, left_out = write(folder / "records.csv", columns), f"left out: {holes} records with missing values\n"
    calibrate = ("calibrate", records, *COLUMNS, "--alpha", 0.2, "--epsilon", 1000, "--out", "cal.json", "--force")
    assert confide_run(*calibrate).refused == (REFUSED, "table")
    secret = confide_run(*calibrate, *skip)
    assert secret.code == 0
    assert "left out" not in secret.out + secret.err
    assert "left_out" not in confide_run(*calibrate, *skip, "--json").json
    public = ("--neighbors", "replace_one")
    assert left_out in confide_run(*calibrate, *skip, *public).out
    assert load_release("cal.json").n == n - holes
    assert confide_run(*calibrate, *skip, *public, "--json").json["left_out"] == holes

    measured = ("evaluate", records, *COLUMNS, "--calibration", "cal.json")
    assert confide_run(*measured).code == REFUSED
    assert left_out in confide_run(*measured, *skip).out
    found = confide_run(*measured, *skip, "--json").json
    coverage = found["found"]["release"]["coverage"]
    assert (found["left_out"], coverage["covered"] + coverage["missed"]) == (holes, n - holes)
    assert "left_out" not in confide_run(*measured, *skip, "--epsilon", 1, "--json").json

    predicted = ("predict", records, *COLUMNS[:2], "--calibration", "cal.json", "--out", "sets.csv", "--force")
    assert confide_run(*predicted).refused == (REFUSED, "table")
    done = confide_run(*predicted, *skip, "--json").json
    assert (done["left_out"], done["rows"]) == (holes, n - holes)


def test_logits_are_what_their_softmax_is(folder, confide_run):
    rng = np.random.default_rng(0)
    z = 2 * rng.standard_normal((400, 3))
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    label = np.array(["a", "b", "c"])[(p.cumsum(axis=1) < rng.random(400)[:, None]).sum(axis=1)]
    for name, columns in (("z", z), ("p", p)):
        write(folder / f"{name}.csv", {f"{name}_{'abc'[k]}": columns[:, k] for k in range(3)} | {"name": label})
    logits, softmax = ("z.csv", "--probabilities", "z_*"), ("p.csv", "--probabilities", "p_*")
    as_logits, applied = ("--set", "logits=true"), ("--calibration", "cal.json")
    asked = ("--label", "name", "--alpha", 0.2, "--set", "mechanism=none", "--neighbors", "replace_one", "--out")
    assert confide_run("calibrate", *logits, *asked, "no.json").refused == (REFUSED, "table")
    assert confide_run("calibrate", *logits, *as_logits, *asked, "cal.json").code == 0
    assert confide_run("calibrate", *softmax, *asked, "p.json").code == 0
    released = confide.Release.load("cal.json")
    assert confide.Release.load("p.json").threshold == released.threshold
    assert released.about["outputs"].startswith("logits")
    assert confide_run("evaluate", *logits, *applied, *as_logits, "--label", "name").err == ""
    of_softmax = confide_run("evaluate", *softmax, *applied, "--label", "name")
    assert "'cal.json' was made from logits; softmax in double precision; 'p_*' is read as" in of_softmax.err


# Groups that overlap

GROUPS = {"sex": ["f", "m"], "age": [1, 2, 3], "site": ["a", "b"]}
RNG = np.random.default_rng(0)
MEMBERS = {name: RNG.choice(values, 3000) for name, values in GROUPS.items()}
F = RNG.normal(size=3000)
TABLE = pa.table({"f": F, "y": F + (1 + (MEMBERS["sex"] == "f")) * RNG.normal(size=3000), **MEMBERS})
VALUES, BY = ("--prediction", "f", "--target", "y"), ("--by", "sex,age,site")
OVERLAPPING = ("calibrate", "t.csv", *VALUES, "--alpha", 0.1, "--set", "unit=1", *BY, "--groups", "f,m;1,2,3;a,b")


@pytest.mark.slow
def test_with_a_fixed_sampler_the_same_is_printed_for_other_records(confide_run, folder, monkeypatch, draw_with):
    """Output, warnings and files of 3000 records and of 5 are equal if the sampler selects the same candidates."""
    draw_with(noisy_number=always(1234), select=always(30))
    outputs = []
    for name, rows in (("all", TABLE), ("few", TABLE.slice(0, 5))):
        (folder / name).mkdir()
        monkeypatch.chdir(folder / name)
        write(folder / name / "t.csv", rows)
        ran = confide_run(*OVERLAPPING, "--epsilon", 1, "--out", "cal.json")
        outputs.append((ran.code, ran.out, ran.err, (folder / name / "cal.json").read_text(encoding="utf-8")))
    assert outputs[0] == outputs[1]


CLASSES = ("--probabilities", "p_*", "--label", "y")
OUTCOMES = ("--prediction", "good", "--target", "outcome")
LEVEL = ("--alpha", "0.1", "--epsilon", 1)
NEW = ("--out", "new.json", "--force")
LOOK = ("--state", "watch.json", "--look", "Monday")
SILO = ("--plan", "plan.json", "--keys", "north.key", "--coordinator", "coordinator.json", "--ledger", "north.db",
        "--budget", 9, "--out", "answer.json")  # fmt: skip
RESIDUAL = "absolute_residual"
OPTIONS = {
    "plain": ("calibrate", *CLASSES, *LEVEL, *NEW),
    "interval": ("calibrate", *OUTCOMES, *LEVEL, *NEW),
    "choose": ("calibrate", *CLASSES, "--set", "choose=lac,aps_deterministic", *LEVEL, *NEW),
    "models": ("calibrate", *OUTCOMES, "--set", f"choose=good:{RESIDUAL},poor:{RESIDUAL}", "--set", "largest_size=9",
               *LEVEL, *NEW),
    "levels": ("calibrate", *CLASSES, "--alpha", "0.1,0.2", "--epsilon", 1, *NEW),
    "classes": ("calibrate", *CLASSES, "--set", "by_class=true", *LEVEL, *NEW),
    "groups": ("calibrate", *CLASSES, "--by", "poor", "--groups", "1,2", *LEVEL, *NEW),
    "persons": ("calibrate", *CLASSES, "--set", "people={person = 'outcome', most = 1, order = 'poor'}", *LEVEL, *NEW),
    "weights": ("calibrate", *CLASSES, "--set", "weights=good", "--set", "weight_bound=2", *LEVEL, *NEW),
    "ledger": ("calibrate", *CLASSES, "--ledger", "l.db", "--dataset", "d", "--again", *LEVEL, *NEW),
    "recalibrate": ("recalibrate", *CLASSES, "--calibration", "cal.json", *NEW),
    "evaluate": ("evaluate", *CLASSES, "--calibration", "cal.json", "--epsilon", 1, *NEW),
    "watch": ("watch", *CLASSES, "--calibration", "cal.json", "--epsilon", 1, "--batch", 300, *LOOK),
    "sizes": ("watch", *CLASSES[:2], "--calibration", "cal.json", "--epsilon", 1, "--unlabelled", *LOOK),
    "answer": ("federated", "answer", *CLASSES, *SILO),
}  # fmt: skip
ROWS = {"none": [], "incomplete": ["0.3,,b,2,1,1"], "one": ["0.3,0.7,b,2,1,1"]}


@pytest.mark.long(unless=("models-skip", "plain-skip", "sizes-skip"))
@pytest.mark.parametrize("skip", [pytest.param(False, marks=pytest.mark.slow), True], ids=["as it is", "skip"])
@pytest.mark.parametrize("case", OPTIONS)
def test_existence_of_records_is_secret(confide_run, folder, case, skip):
    (folder / "first.csv").write_text("p_a,p_b,y\n" + "0.3,0.7,b\n0.9,0.1,a\n" * 200)
    assert confide_run("calibrate", "first.csv", *CLASSES, *LEVEL, "--out", "cal.json").code == 0
    coordinator, silo = (federated.SiloKeys.generate(name) for name in ("coordinator", "north"))
    silo.save(folder / "north.key")
    (folder / "coordinator.json").write_text(coordinator.public().to_json())
    plan = federated.plan([silo.public()], 0.2, 2.0, score="lac", method="private-qq", n_typical=300)
    (folder / "plan.json").write_text(plan.sign(coordinator))
    for rows in ("none", "incomplete", "one") if skip else ("none", "one"):
        (folder / "t.csv").write_text("\n".join(["p_a,p_b,y,good,poor,outcome", *ROWS[rows]]) + "\n")
        for written in ("watch.json", "north.db", "north.key.checkpoint", "answer.json"):
            (folder / written).unlink(missing_ok=True)
        command, *words = OPTIONS[case]
        within = () if command != "federated" else (words.pop(0),)
        left_out = ("--set", "skip_incomplete=true")
        done = confide_run(command, *within, "t.csv", *words, *(left_out if skip else ()))
        # Warnings depend on the drawn threshold, which differs from run to run; errors do not.
        assert (done.code, "error" in done.err) == (0, False), (rows, done.err)
