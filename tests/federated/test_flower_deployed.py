"""A SuperLink and SuperNodes as separate processes on loopback; their release matches the messages of the silos."""

import json
import os
import shutil
import signal
import subprocess

import numpy as np
import pytest

from confide import federated
from confide.core import Release
from tests.federated.helpers import Federation

pytest.importorskip("flwr", reason="needs the extra 'flower': pip install 'confide[flower]'")

from tests.docs.blocks import ROOT, blocks
from tests.federated.deployment import APP, BIN, Deployment, free_port, stop_all_that_name

NEEDS_TOOLS = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("openssl", "ssh-keygen")), reason="needs openssl and ssh-keygen"
)


def federation(tmp_path, sizes):
    rng = np.random.default_rng(0)
    (tmp_path / "states").mkdir()
    return Federation(tmp_path / "states", [rng.random(n) for n in sizes])


@pytest.fixture
def deployment(tmp_path, request):
    made = Deployment(tmp_path, secure=request.param)
    try:
        yield made
    finally:
        made.stop()


def again_in_process(silos, plan):
    """Aggregate again in process; the silos' ledgers return the messages that they sent over Flower."""
    spent = [state.spent for state in silos.ledgers]
    released = federated.aggregate(plan, silos.answers(plan))
    assert [state.spent for state in silos.ledgers] == spent
    return released


@pytest.mark.long
@NEEDS_TOOLS
@pytest.mark.parametrize("deployment", [True], indirect=True)
def test_five_silos_over_tls_with_one_killed_and_one_hanging(deployment, tmp_path):
    five = federation(tmp_path, (200, 150, 120, 180, 160))
    deployment.serve(five)
    plan = five.plan()
    released, _ = deployment.calibrate(plan, tmp_path / "first.json", nodes=5)
    assert released.answered == tuple(f"silo {i}" for i in range(5))
    assert released.coverage >= 0.9
    assert again_in_process(five, plan) == released
    plan = five.plan(method="secure-sum", population="common")
    summed, _ = deployment.calibrate(plan, tmp_path / "second.json", nodes=5)
    assert len(summed.answered) == 5
    assert np.isfinite(summed.threshold)
    assert again_in_process(five, plan) == summed

    deployment.kill("node3")
    deployment.kill("node2", signal.SIGSTOP)  # it hangs: accepts nothing, sends nothing
    fewer, output = deployment.calibrate(five.plan(dropouts=2), tmp_path / "fourth.json", nodes=5, timeout=25)
    assert fewer.answered == ("silo 0", "silo 1", "silo 4")
    assert fewer.coverage >= 0.9
    assert json.loads((tmp_path / "fourth.json").read_text())["answered"] == ["silo 0", "silo 1", "silo 4"]
    assert "Traceback" not in output

    plan = five.plan(method="secure-sum", population="common")
    released, output = deployment.run_app(plan, tmp_path / "fifth.json", nodes=5, timeout=20)
    assert released is None
    assert "missing: nothing is released; no usable answer came from 'silo 2', 'silo 3'" in output
    assert "Traceback" not in output


@pytest.mark.long
@NEEDS_TOOLS
def test_the_page_on_deployment_as_it_stands(tmp_path):
    """Run all commands of the page in one shell and one folder, on free ports."""
    shutil.copytree(APP, tmp_path / "app")
    page = blocks(ROOT / "docs" / "howto" / "flower.md")
    typed = "".join(
        block.text for block in page if block.language == "bash" and "installs" not in block.markers["not run"]
    )
    for port in ("9443", "9101", "9102"):
        assert port in typed
        typed = typed.replace(port, str(free_port()))
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("FLWR_HOME", None)
    stop = "trap 'kill $(jobs -p) 2> /dev/null' EXIT\nset -e\n"
    try:
        done = subprocess.run(
            ["bash", "-c", stop + typed], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert "2 of 2 silos answered" in done.stdout
        assert "Traceback" not in done.stdout + done.stderr
        released = Release.from_json((tmp_path / "released.json").read_text())
        assert released.answered == ("north", "south")
    finally:
        stop_all_that_name(tmp_path)
