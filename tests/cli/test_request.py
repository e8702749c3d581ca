"""A request: options, a TOML file and NAME=VALUE pairs under the names of the Python API, each stated once."""

import re
import tomllib
from inspect import signature
from itertools import pairwise

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import DONE, REFUSED
from confide.cli.request import NAMES
from confide.cli.request_file import written_request
from confide.core import load_release
from confide.tables.calibrate import TableOptions
from tests.files import class_table, write

ASKED = ("--probabilities", "p_*", "--label", "name", "--alpha", "0.1", "--epsilon", "1")


@pytest.fixture
def records(folder):
    return write(folder / "records.parquet", class_table())


def test_a_written_request_has_every_argument_of_calibrate_table_with_a_sentence():
    lines = written_request().splitlines()
    stated = [(before, line) for before, line in pairwise(lines) if re.match(r"#[\w.]+ =", line)]
    assert {re.split("[ .]", line[1:])[0] for _, line in stated} == NAMES
    assert all(before.startswith("# ") for before, _ in stated)
    assert tomllib.loads(written_request()) == {}
    explicit = set(signature(confide.tables.calibrate_table).parameters)
    assert {*explicit, *TableOptions.__optional_keys__} - {
        "source", "what", "progress", "options", "ledger", "dataset", "again", "chosen"
    } <= NAMES  # fmt: skip


def test_a_file_serves_plan_and_calibrate(confide_run, folder, records):
    (folder / "r.toml").write_text(
        'probabilities = "p_*"\nlabel = "name"\nalpha = 0.1\nepsilon = 1.0\ndelta = 0.05\nabout = {date = 2026-11-29}\n'
    )
    made = confide_run("calibrate", records, "--request", "r.toml", "--out", "cal.json")
    assert made.code == DONE, made.err
    released = load_release("cal.json")
    assert (released.about["date"], released.score) == ("2026-11-29", "lac")
    assert "with probability 0.95 over the calibration data" in made.out
    typed = confide_run("plan", *ASKED, "--set", "delta=0.05", "--n", 500, "--json").json
    assert confide_run("plan", "--request", "r.toml", "--n", 500, "--json").json == typed
    assert typed["guarantee"]["delta"] == 0.05
    grouped = confide_run("plan", "--request", "r.toml", "--by", "ward", "--groups", "a,b", "--n", 500)
    assert grouped.out.startswith("for each group or class, with 500 records in it:\npromise: ")


def test_an_unknown_name_is_refused_with_the_nearest_one(confide_run, records):
    ran = confide_run("calibrate", records, *ASKED, "--out", "cal.json", "--set", "delts=0.05")
    assert "Did you mean 'delta'?" in ran.error


def test_a_request_replaces_nothing_but_a_request(confide_run, folder):
    assert confide_run("request", "--out", "r.toml").code == DONE
    assert confide_run("request", "--out", "r.toml").code == 4
    assert confide_run("request", "--out", "r.toml", "--force").code == DONE
    confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0).save("cal.json")
    before = (folder / "cal.json").read_bytes()
    assert confide_run("request", "--out", "cal.json", "--force").refused == (REFUSED, "--out")
    assert (folder / "cal.json").read_bytes() == before
