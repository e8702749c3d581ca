"""With --json a command prints one line of JSON on stdout, everything else on stderr; a repeated job is free."""

import json

import click
import numpy as np
import pytest

from confide.cli.app import app
from tests.files import write

COLUMNS = ("--probabilities", "p_*", "--label", "y")
PUBLIC = ("--alpha", "0.1", "--epsilon", "1", "--neighbors", "replace_one")
PAID = ("--ledger", "l.db", "--dataset", "a")
LINES = {
    "plan": ("--alpha", 0.1, "--epsilon", 1, "--n", 500, "--neighbors", "replace_one"),
    "calibrate": ("t.csv", *COLUMNS, *PUBLIC, *PAID, "--out", "r.json"),
    "recalibrate": ("u.csv", "--calibration", "r.json", *COLUMNS, *PAID, "--out", "r2.json"),
    "predict": ("t.csv", "--probabilities", "p_*", "--calibration", "r.json", "--out", "sets.csv"),
    "evaluate": ("t.csv", *COLUMNS, "--calibration", "r.json"),
    "watch": (
        "t.csv",
        "--calibration",
        "r.json",
        *COLUMNS,
        "--state",
        "w.json",
        "--look",
        "may",
        "--epsilon",
        1,
        "--batch",
        500,
    ),
    "show": ("r.json",),
    "verify": ("r2.json",),
    "ledger list": ("l.db",),
    "ledger show": ("l.db", "a"),
    "ledger limit": ("l.db", "a", 9, "--neighbors", "replace_one"),
    "budget plan": ("--epsilon", 3, "--looks", 2, "--rule", "basic"),
}
"""A small case of every command with --json, in an order in which each has the files of earlier ones."""


def with_json(command, path=()):
    """The words of every command with --json."""
    if isinstance(command, click.Group):
        return {name for key, one in command.commands.items() for name in with_json(one, (*path, key))}
    return {" ".join(path)} if any("--json" in one.opts for one in command.params) else set()


@pytest.fixture
def tables(folder):
    rng = np.random.default_rng(0)
    for name in ("t.csv", "u.csv"):
        p = rng.dirichlet([6, 2, 1], size=500)
        labels = [rng.choice(["a", "b", "c"], p=row) for row in p]
        write(folder / name, {**{f"p_{c}": p[:, k] for k, c in enumerate("abc")}, "y": labels})
    return folder


@pytest.mark.slow
def test_every_command_prints_one_line(confide_run, tables):
    assert with_json(app) == {*LINES}
    for name, words in LINES.items():
        done = confide_run("-v", *name.split(), *words, "--json")
        assert done.code == 0, f"{name}: {done.err}"
        assert done.out.endswith("}\n"), name
        assert done.out.count("\n") == 1, name
        assert isinstance(json.loads(done.out), dict)
        assert all(line.startswith(("2", "warning: ", "note: ")) for line in done.err.splitlines()), done.err


@pytest.mark.slow
def test_a_job_that_is_tried_again_is_answered_from_the_ledger_and_charged_once(confide_run, tables):
    command = ("calibrate", *LINES["calibrate"], "--force", "--json")
    first, again = confide_run(*command), confide_run(*command)
    assert (first.code, again.code) == (0, 0)
    assert first.json["earlier"] != again.json["earlier"]
    assert [one.json["calibration"] for one in (first, again)] == [json.loads((tables / "r.json").read_text())] * 2
    spent = confide_run("ledger", "show", "l.db", "a", "--json").json
    assert len(spent["entries"]) == 1
