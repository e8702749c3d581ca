"""The Flower adapter on a grid within the process."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from confide.core import Release
from confide.errors import InputError
from tests.federated.helpers import Federation

pytest.importorskip("flwr", reason="needs the extra 'flower': pip install 'confide[flower]'")

from confide.federated import flower
from tests.federated.test_products import grid_of
from tests.refused import refused

APP = Path(__file__).parents[2] / "examples" / "flower"


@pytest.fixture
def four(tmp_path):
    return Federation.uniform(tmp_path, 200, 150, 120, 180)


def test_waiting_for_nodes_ends(four):
    assert flower.wait_for_nodes(grid_of(four), 4) == [10, 11, 12, 13]
    assert len(flower.wait_for_nodes(grid_of(four), 9, timeout=0.1, poll=0.05)) == 4


def test_a_warning_stays_in_the_log_of_the_silo(four, caplog, recwarn):
    """For another request about different data a silo returns its first answer, and warns only in its own log."""
    plan = four.plan()
    first = flower.ask(grid_of(four), plan, [10], timeout=1)
    four.scores[0] = four.scores[0] / 2
    again = flower.ask(grid_of(four), plan, [10], timeout=1)
    assert again == first
    assert any("was made from other data than these" in record.getMessage() for record in caplog.records)
    assert not [one for one in recwarn if issubclass(one.category, UserWarning)]


def test_a_folder_is_named_by_the_node_or_by_whoever_simulates(monkeypatch, tmp_path):
    from flwr.app import Context, RecordDict

    def folder(**config):
        context = Context(run_id=1, node_id=1, node_config=config, state=RecordDict(), run_config={"silos": "/other"})
        return flower.silo_folder(context)

    assert folder(confide="/its/folder") == Path("/its/folder")
    monkeypatch.delenv(flower.SILOS, raising=False)
    with refused(InputError, "folder"):
        folder(**{"partition-id": 2})
    monkeypatch.setenv(flower.SILOS, str(tmp_path))
    assert folder(**{"partition-id": 2}) == tmp_path / "silo-2"
    assert folder(confide="/its/folder") == Path("/its/folder")
    with refused(InputError, "folder"):
        folder()


@pytest.mark.long
@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'confide[flower]' 'ray>=2.40'")
def test_the_example_is_simulated_by_one_command(tmp_path):
    """Run Flower's simulation engine from an empty folder to a calibration."""
    command = [sys.executable, APP / "simulate.py", tmp_path / "simulation"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    released = Release.from_json((tmp_path / "simulation" / "released.json").read_text())
    assert released.answered == tuple(f"hospital {i}" for i in range(4))
    assert "4 answered" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
