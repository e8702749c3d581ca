"""The recipes for MLflow, MONAI and NVIDIA FLARE, and for language models, run over confide's public names."""

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import confide
from confide import federated
from tests.docs.blocks import ROOT
from tests.elsewhere import python_of
from tests.federated.helpers import Federation

EXAMPLES = ROOT / "examples"


def output(*command, cwd, path=""):
    """Run a program and return its output; after five minutes it ends with all processes that it started."""
    source = str(Path(confide.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([source, str(ROOT), path])}
    with subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=300)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # the group of the process that was started here
    assert process.returncode == 0, printed
    return printed


@pytest.mark.slow
def test_mlflow_serves_the_sets_of_predict_set(tmp_path):
    """The model that the recipe writes is loaded in another process, which knows only its folder."""
    python = python_of("mlflow")
    output(python, EXAMPLES / "mlflow_sets.py", "sets", cwd=tmp_path)
    program = """
import json, mlflow, numpy as np, pandas as pd
served, rows = mlflow.pyfunc.load_model("sets"), np.random.default_rng(1).normal(size=(50, 3))
table = pd.DataFrame(rows, columns=["age", "marker", "dose"])
found, inner = served.predict(table), mlflow.sklearn.load_model("sets-classifier")
print(json.dumps([[list(one) for one in found["labels"]], found["size"].tolist(), sorted(set(found["promise"])),
                  inner.predict_proba(table).tolist(), inner.classes_.tolist()]))
"""
    labels, sizes, promises, p, classes = json.loads(output(python, "-c", program, cwd=tmp_path).splitlines()[-1])
    released = confide.Release.load(tmp_path / "sets-release")
    assert labels == confide.predict_set(np.array(p), released, classes).labels()
    assert sizes == [len(one) for one in labels]
    assert len(set(sizes)) > 1
    assert promises == [str(released.guarantee)]


@pytest.mark.long
def test_monai_predicts_masks_that_miss_little(tmp_path):
    """100 new images miss about 0.1 of their area: shares in [0, 1] have standard deviations of at most 0.5."""
    if find_spec("monai") is None:
        pytest.skip("needs MONAI: pip install monai 'confide[torch]'")
    printed = output(sys.executable, EXAMPLES / "monai_masks.py", cwd=tmp_path)
    assert "(1, 32, 32) torch.bool" in printed
    assert confide.load(tmp_path / "conformal.json").risk <= 0.1
    assert 0 <= float(printed.split("loss 'missed_area'")[1].split()[0]) < 0.1 + 6 * 0.5 / np.sqrt(100)


@pytest.mark.slow
def test_flare_carries_the_plan_and_the_answers(tmp_path):
    """Three sites answer and one has no records; the simulator's release is that of the same messages."""
    python = python_of("nvflare")
    made = Federation.uniform(tmp_path, 200, 150, 120, 180)
    for i, keys in enumerate(made.keys):
        folder = tmp_path / "sites" / f"site-{i}"
        folder.mkdir(parents=True)
        np.save(folder / "scores.npy", made.scores[i])
        keys.save(folder / "keys.json")
        made.policy.save(folder / "policy.json")
        made.ledgers[i] = federated.SiloLedger(folder / "budget.db")
    (tmp_path / "sites" / "site-3" / "scores.npy").unlink()
    local = tmp_path / "work" / "local"
    local.mkdir(parents=True)
    (local / "confide.json").write_text(json.dumps({"folder": str(tmp_path / "sites" / "{site}")}))
    (local / "resources.json").write_text('{"format_version": 2, "class_allow_list": ["nvflare_round."]}')
    plan = made.plan(dropouts=1)
    (tmp_path / "plan.json").write_text(plan)
    path = str(EXAMPLES)
    output(python, EXAMPLES / "nvflare_round.py", "plan.json", "job", cwd=tmp_path)
    names = ",".join(f"site-{i}" for i in range(4))
    command = [python.with_name("nvflare"), "simulator", "job", "-w", "work", "-c", names, "-t", 4]
    printed = output(*command, cwd=tmp_path, path=path)
    file = tmp_path / "work" / "server" / "simulate_job" / "released.json"
    assert file.exists(), printed
    assert "3 answered; refused: site-3 (internal)" in printed, printed
    assert confide.load(file) == federated.aggregate(plan, made.answers(plan, [0, 1, 2]))
    assert [ledger.spent for ledger in made.ledgers] == pytest.approx([2.0, 2.0, 2.0, 0.0])
    # The reason stays in the site's own log, because FLARE sends its logs to the server.
    assert "FileNotFoundError" in (tmp_path / "work" / "site-3" / "local" / "confide.log").read_text()
    assert "FileNotFoundError" not in printed


@pytest.mark.long
def test_sets_of_options_and_filtered_claims():
    """Means over splits are nearly normal: six standard errors are exceeded less than once in a million runs."""
    command = [sys.executable, "-m", "examples.language_models", "40"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows = [list(map(float, line.split())) for line in done.stdout.splitlines()[4:]]
    assert [row[0] for row in rows] == [0.1, 0.5, 1.0, 4.0]
    for _, covered, error, size, wrong, spread, kept in rows:
        assert covered > 0.9 - 6 * error
        assert wrong < 0.1 + 6 * spread
        assert 1 < size < 4
        assert kept > 0.3  # keeping nothing would be valid, too
