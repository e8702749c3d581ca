"""NVIDIA FLARE's simulator runs jobs of `confide.federated.nvflare`, in an environment of its own."""

import json
import os
import subprocess
import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from confide import federated
from confide.errors import InputError, MissingExtraError
from confide.federated import Refusal, nvflare
from confide.releases import Calibration
from tests.environments import python_of
from tests.federated.deployment import stop_all_that_name
from tests.federated.helpers import Federation
from tests.refused import refused

ROOT = Path(__file__).parents[2]


@pytest.fixture
def python():
    return python_of("nvflare")


def sites(tmp_path, sizes):
    """Create sites with one folder each; a file in the simulator's working folder states their places."""
    (tmp_path / "states").mkdir()
    made = Federation(tmp_path / "states", [np.random.default_rng(n).random(n) for n in sizes])
    for i, keys in enumerate(made.keys):
        folder = tmp_path / "sites" / f"site-{i}"
        folder.mkdir(parents=True)
        np.save(folder / "scores.npy", made.scores[i])
        keys.save(folder / "keys.json")
        made.policy.save(folder / "policy.json")
        made.ledgers[i] = federated.SiloLedger(folder / "budget.db")
    local = tmp_path / "work" / "local"
    local.mkdir(parents=True)
    made.coordinator.save(tmp_path / "coordinator.json")
    own = {"folder": str(tmp_path / "sites" / "{site}"), "keys": str(tmp_path / "coordinator.json")}
    (local / "confide.json").write_text(json.dumps(own))
    (local / "resources.json").write_text('{"format_version": 2, "class_allow_list": ["confide.federated.nvflare."]}')
    return made


@pytest.fixture
def four(tmp_path):
    return sites(tmp_path, (200, 150, 120, 180))


LOST = "Communication error with client"
"""The simulator finds ports for its workers before they start; it loses a worker if another program takes a port."""


def simulate(python, tmp_path, plan, timeout=60, then=lambda line: None, tries=3):
    """Run a job over the sites; return FLARE's output and the server's run folder.

    `then` receives each line of output. If the simulator loses a worker the job runs again; sites then return the same
    answers.
    """
    nvflare.write_job(tmp_path / "calibrate", plan, timeout=timeout)
    for _ in range(tries):
        printed = "".join(run_job(python, tmp_path, then))
        if LOST not in printed:
            break
    return printed, tmp_path / "work" / "server" / "simulate_job"


def run_job(python, tmp_path, then):
    names = sorted(path.name for path in (tmp_path / "sites").iterdir())
    command = [python.with_name("nvflare"), "simulator", tmp_path / "calibrate", "-w", tmp_path / "work"]
    environment = os.environ | {"PYTHONPATH": str(Path(nvflare.__file__).parents[2]), "PYTHONUNBUFFERED": "1"}
    limit = threading.Timer(200, stop_all_that_name, [tmp_path])
    limit.start()
    try:
        with subprocess.Popen(
            [*command, "-c", ",".join(names), "-t", str(len(names))],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            for line in running.stdout:
                then(line)
                yield line
    finally:
        limit.cancel()
        stop_all_that_name(tmp_path)


@pytest.mark.slow
def test_sites_decide_and_nothing_but_a_code_travels(python, four, tmp_path):
    """Two sites answer; one site's policy allows less than the plan requests; one site has no records."""
    federated.Policy(four.policy.coordinator, budget=4.0, per_plan=1.0).save(tmp_path / "sites/site-2/policy.json")
    (tmp_path / "sites" / "site-3" / "scores.npy").unlink()
    plan = four.plan(dropouts=2)
    printed, run = simulate(python, tmp_path, plan)
    assert (run / "released.json").exists(), printed
    released = Calibration.from_json((run / "released.json").read_text())
    assert released.answered == ("silo 0", "silo 1")
    assert released.coverage >= 0.9
    assert "2 answered; refused: site-2 (not-allowed), site-3 (internal)" in printed, printed
    # The sites' ledgers store their messages: in process the same request gives the same result.
    assert [ledger.spent for ledger in four.ledgers] == pytest.approx([2.0, 2.0, 0.0, 0.0])
    assert federated.aggregate(plan, four.answers(plan, [0, 1]), keys=four.coordinator) == released
    # The reason stays in the site's own log, because FLARE sends its logs to the server.
    assert "FileNotFoundError" in (tmp_path / "work/site-3/local/confide.log").read_text()
    assert "the policy allows" in (tmp_path / "work/site-2/local/confide.log").read_text()
    for file in (tmp_path / "work").rglob("*"):
        if file.is_file() and file.name != nvflare.LOG:
            said = file.read_text(errors="replace")
            assert "FileNotFoundError" not in said, file
            assert "the policy allows" not in said, file
    assert "FileNotFoundError" not in printed


@pytest.mark.slow
def test_a_site_that_hangs_is_named(python, four, tmp_path):
    """A secure sum without one of its sites returns an error and no release."""
    hanging = tmp_path / "sites" / "site-3" / "scores.npy"
    hanging.unlink()
    os.mkfifo(hanging)  # reading blocks until a writer opens the pipe

    def let_go(line):  # the simulator waits for all its processes
        if "nothing is released" in line:
            os.close(os.open(hanging, os.O_WRONLY | os.O_NONBLOCK))

    plan = four.plan(method="secure-sum", population="common")
    printed, run = simulate(python, tmp_path, plan, timeout=12, then=let_go)
    assert (
        "missing: nothing is released; no usable answer came from 'silo 3' (3 answered; silent: site-3)" in printed
    ), printed
    assert not (run / "released.json").exists()
    assert "Traceback" not in printed


@pytest.mark.slow
def test_a_secure_sum_opens_without_the_site_that_is_missing(python, tmp_path):
    """One of five sites has lost its records: it cannot answer, and helps to reconstruct the sum of the others."""
    five = sites(tmp_path, (80, 90, 100, 110, 120))
    (tmp_path / "sites" / "site-2" / "scores.npy").unlink()
    plan = five.opened_plan()
    printed, run = simulate(python, tmp_path, plan)
    assert (run / "released.json").exists(), printed
    released = Calibration.from_json((run / "released.json").read_text())
    assert released.answered == ("silo 0", "silo 1", "silo 3", "silo 4")
    assert released.coverage >= 0.9
    assert "4 answered; refused: site-2 (internal); second request: 5 answered" in printed, printed
    assert [ledger.spent for ledger in five.ledgers] == pytest.approx([2.0, 2.0, 0.0, 2.0, 2.0])
    (kept,) = tmp_path.glob("*-list.json")
    answers = json.loads(kept.read_text())["answers"]
    assert sorted(answers) == sorted(five.answers(plan, [0, 1, 3, 4]))


def test_a_job_is_the_plan_and_two_class_names(four, tmp_path):
    plan = four.plan()
    folder = nvflare.write_job(tmp_path / "calibrate", plan, out="out.json", timeout=30, clients=2)
    assert json.loads((folder / "meta.json").read_text())["min_clients"] == 2
    config = folder / "app" / "config"
    assert sorted(path.name for path in config.iterdir()) == [
        "config_fed_client.json",
        "config_fed_server.json",
        "plan.json",
    ]
    (server,) = json.loads((config / "config_fed_server.json").read_text())["workflows"]
    assert (server["path"], server["args"]) == (
        "confide.federated.nvflare.PlanController",
        {"out": "out.json", "timeout": 30},
    )
    (client,) = json.loads((config / "config_fed_client.json").read_text())["executors"]
    assert client["tasks"] == ["confide", "confide_open"]
    assert client["executor"] == {"path": "confide.federated.nvflare.SiloExecutor", "args": {}}
    assert (config / "plan.json").read_text() == plan
    with refused(Refusal, "malformed"):
        nvflare.write_job(tmp_path / "none", "no plan")
    with refused(InputError, "out"):
        nvflare.write_job(tmp_path / "none", plan, out="../out.json")
    assert not (tmp_path / "none").exists()


def test_a_site_names_its_folder(tmp_path):
    with refused(InputError, "path"):
        nvflare.silo_folder(tmp_path, "north")
    (tmp_path / "confide.json").write_text('{"folder": 7}')
    with refused(InputError, "folder"):
        nvflare.silo_folder(tmp_path, "north")
    assert nvflare.coordinator_keys(tmp_path) is None
    (tmp_path / "confide.json").write_text('{"folder": "/srv/{site}/confide", "keys": "/srv/keys.json"}')
    assert nvflare.coordinator_keys(tmp_path) == Path("/srv/keys.json")
    assert nvflare.coordinator_keys(tmp_path / "none") is None
    assert nvflare.silo_folder(tmp_path, "north") == Path("/srv/north/confide")


def test_the_site_log_reaches_no_other_logger(tmp_path, caplog):
    with nvflare.site_log(tmp_path) as log:
        log.error("local failure")
    assert "local failure" in (tmp_path / nvflare.LOG).read_text()
    assert not caplog.records


@pytest.mark.skipif(find_spec("nvflare") is not None, reason="NVIDIA FLARE is installed here")
@pytest.mark.parametrize("made", [nvflare.SiloExecutor, nvflare.PlanController])
def test_what_is_missing_is_said(made):
    with refused(MissingExtraError, "confide.federated.nvflare"):
        made()
