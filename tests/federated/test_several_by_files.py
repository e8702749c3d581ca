"""Several levels, groups and classes by the command line: one plan file, one answer file per silo, one calibration."""

import json
from pathlib import Path

import numpy as np
import pytest

from confide import federated
from confide.releases import Release
from tests.federated.by_files import Files
from tests.files import write

NAMES = ("north", "south", "east")
KEYS = {name: federated.SiloKeys.generate(name) for name in (*NAMES, "coordinator")}


@pytest.fixture
def files(tmp_path, monkeypatch, run):
    """Tables of scores, of groups and of probabilities with labels; public files with and without a size."""
    monkeypatch.chdir(tmp_path)
    asked = ("--epsilon", 8, "--candidates", "unit:21", "--force")
    made = Files(run, dict.fromkeys(NAMES, 300), asked=asked, columns=(), budget=8, keys=KEYS)
    rng = np.random.default_rng(3)
    Path("secret").mkdir()
    for name in KEYS:
        Path("secret", f"{name}.json").write_text(KEYS[name].public().to_json())
    for name in NAMES:
        no = rng.random(300).round(6)
        wards, labels = rng.choice(["a", "b"], 300), rng.choice(["no", "yes"], 300)
        write(Path(f"{name}.csv"), {"s": rng.random(300), "ward": wards, "p_no": no, "p_yes": 1 - no, "y": labels})
    return made


SCORES = ("--score-column", "s", "--score", "lac")
PROBABILITIES = ("--probabilities", "p_*", "--label", "y")


@pytest.mark.slow
def test_two_levels_of_one_sum(files, run):
    said = files.plan("--alpha", "0.2,0.1", "--score", "lac", "--method", "secure-sum")
    assert "privacy: 8-differential privacy for replacing one record" in said
    assert "alpha 0.2, 3 answers: coverage at least 0.8" in said
    assert "alpha 0.1, 3 answers: coverage at least 0.9" in said
    shown = run("show", "plan.json")
    assert "coverage 0.8 and 0.9" in shown
    assert "8-differential privacy" in shown
    document = json.loads(run("show", "plan.json", "--json"))
    assert [part["name"] for part in document["plans"]] == ["1/5", "1/10"]
    for name in NAMES:
        assert "spent so far: 8 of 8" in files.answer(name, "--force", *SCORES)
    assert "earlier answer of" in files.answer("north", "--force", *SCORES)
    assert "--by must be left out" in files.answer("north", "--force", *SCORES, "--by", "ward", code=2)
    said = files.aggregate("--keys", "coordinator.key")
    assert "privacy of all together: 8-differential privacy" in said
    assert "alpha 0.1: threshold" in run("show", "released.json")
    asked = ("--coordinator", "public/coordinator.json", "--answer", "north-answer.json")
    assert "the answer of 'north' counts" in run("verify", "released.json", *asked)
    out = ("--calibration", "released.json", "--probabilities", "p_*", "--out", "sets.csv")
    run("predict", "north.csv", *out)
    assert "prediction_set_0.1" in Path("sets.csv").read_text()


@pytest.mark.slow
def test_a_threshold_for_each_group(files, run):
    files.plan("--alpha", 0.2, "--score", "lac", "--groups", "a,b", silos="secret")
    assert "for each group of 2: a, b" in run("show", "plan.json")
    assert "--by is missing" in files.answer("north", "--force", *SCORES, code=2)
    for name in NAMES:
        files.answer(name, "--force", *SCORES, "--by", "ward")
    assert "group 'a'" in files.aggregate("--keys", "coordinator.key")
    released = Release.load("released.json")
    assert list(released.parts) == ["a", "b"]
    assert released.infinite == ()
    own = ("federated", "own", "north-answer.json", "--calibration", "released.json", "--out", "own.json", "--force")
    assert "--of: " in run(*own, code=3)
    assert "new records: those of 'north'" in run(*own, "--of", "b")
    assert Release.load("own.json").threshold >= released["b"].threshold


@pytest.mark.slow
def test_a_threshold_for_each_class(files, run):
    files.plan("--alpha", 0.2, "--score", "lac", "--by-class", "--classes", "yes,no", silos="secret")
    for name in NAMES:
        files.answer(name, "--force", *PROBABILITIES)
    assert "class 'yes'" in files.aggregate("--keys", "coordinator.key")
    assert "--by-class needs --classes" in files.plan("--alpha", 0.2, "--by-class", silos="secret", code=2)
    assert "--groups must be left out with --by-class" in files.plan(
        "--alpha", 0.2, "--by-class", "--groups", "a", silos="secret", code=2
    )
    compared = ("--alpha", 0.2, "--score", "lac", "--groups", "a,b", "--compare")
    assert "-> private-qq, all 3 silos" in files.plan(*compared, silos="secret")
    assert "exclude each other" in files.plan("--alpha", "0.2,0.1", "--groups", "a", silos="secret", code=2)
    refused = files.plan("--alpha", 0.2, "--groups", "a", code=3)
    assert "keep their sizes secret" in refused
