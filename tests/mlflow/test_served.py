"""MLflow logs, loads and serves models of `confide.mlflow`, in a separate environment."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

import confide
from confide.errors import MissingExtraError
from tests.environments import python_of
from tests.refused import refused

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def python():
    return python_of("mlflow")


def surroundings(python):
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    source = Path(confide.__file__).parents[1]
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(source), str(ROOT)]), "PATH": path}


@pytest.fixture(scope="module")
def folder(python, tmp_path_factory):
    """The folder with the models and the results."""
    folder = tmp_path_factory.mktemp("mlflow")
    command = [python, "-m", "tests.mlflow.logged", folder]
    done = subprocess.run(command, cwd=ROOT, env=surroundings(python), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def found(folder):
    return json.loads((folder / "found.json").read_text())


def rows(answer):
    status, content = answer
    assert status == 200, content
    return content["predictions"]


def labels(answer):
    assert all(row["size"] == len(row["labels"]) for row in rows(answer))
    return [row["labels"] for row in rows(answer)]


@pytest.mark.slow
def test_a_release_alone_serves_the_sets_of_predict_set(found):
    """Columns in any order, as a table and as inputs; an array if classes have no names."""
    case = found["named"]
    assert labels(case["split"]) == labels(case["inputs"]) == labels(case["at level"]) == case["expected"]
    assert [[["dog", "cat", "emu"][k] for k in one] for one in labels(case["places"])] == case["expected"]
    assert {row["promise"] for row in rows(case["split"])} == {case["facts"][1]}
    assert labels(found["unnamed"]["inputs"]) == found["unnamed"]["expected"]
    assert len({len(one) for one in case["expected"]}) > 1


@pytest.mark.slow
def test_tags_requirements_and_files_of_a_logged_model(found):
    case = found["named"]
    checksum, promise = case["facts"]
    tags = {key: value for key, value in case["tags"].items() if key.startswith("confide.")}
    assert tags.pop("confide.privacy")
    assert tags == {
        "confide.alpha": "0.1",
        "confide.epsilon": "1",
        "confide.score": "lac",
        "confide.checksum": checksum,
        "confide.promise": promise,
        "confide.version": case["versions"][1],
    }
    assert case["tags"]["team"] == "wards"
    assert case["release"] is True
    names = ("mlflow-skinny", "confide", "numpy", "pandas")
    assert case["requirements"] == [f"{n}=={v}" for n, v in zip(names, case["versions"], strict=True)]
    assert not [name for name in case["files"] if name.endswith((".pkl", ".pickle"))]


@pytest.mark.slow
def test_one_of_several_levels_is_requested(found):
    case = found["levels"]
    assert [labels(one) for one in case["asked"]] == case["expected"]
    assert case["expected"][0] != case["expected"][1]
    status, content = case["none"]
    assert status == 400
    assert "alpha: must be given, one of the calibrated levels 0.3, 0.1" in content["message"]


@pytest.mark.slow
def test_a_stored_mlflow_model_is_wrapped_with_its_classes(found):
    case = found["address"]
    assert labels(case["split"]) == case["expected"]
    assert case["outputs"] is True
    assert any(case["expected"])


@pytest.mark.slow
def test_intervals_of_a_function_and_of_quantiles(found):
    case = found["intervals"]
    for (lower, upper), answer in zip(case["expected"], case["asked"], strict=True):
        assert [row["lower"] for row in rows(answer)] == lower
        assert [row["upper"] for row in rows(answer)] == upper


@pytest.mark.slow
def test_a_model_is_compared_when_it_is_logged(found):
    case = found["fingerprint"]
    assert {name: argument for name, (argument, _) in case["said"].items()} == {
        "no model": "probe",
        "retrained": "fingerprint",
    }
    assert "of their spread" in case["said"]["retrained"][1]
    assert len(rows(case["answer"])) == 20
    assert case["reminders"] == []


@pytest.mark.slow
def test_changed_files_raise_in_both_entry_points(found):
    said = found["changed"]
    assert len(said) == 4
    assert all("is not the one that was logged: its checksum does not match" in one for one in said.values())


@pytest.mark.slow
def test_invalid_requests_return_the_reason(found):
    for case, name, words in (
        ("named", "other level", "alpha: must be left out, or 0.1"),
        ("named", "no probabilities", "probabilities: must lie in [0, 1]"),
        ("wards", "unknown", "groups: must"),
        ("wards", "without", "ward"),
    ):
        status, content = found[case][name]
        assert status == 400
        assert words in content["message"]
        assert "stack_trace" not in content


@pytest.mark.slow
def test_models_that_cannot_be_logged_raise_with_a_remedy(found):
    said = found["refused"]
    assert {name: kind for name, (kind, _) in said.items()} == {
        "no release": "InputTypeError",
        "no model": "InputTypeError",
        "no address": "InputError",
        "no example": "InputError",
        "own score": "InputError",
        "other classes": "InputError",
        "not ours": "FormatError",
        **{f"described {key}": "FormatError" for key in ("loader_module", "artifacts", "config", "model_code_path")},
    }
    assert "Log it with MLflow's own flavour and give its address" in said["no model"][1]
    assert "input_example: must be given" in said["no example"][1]


@pytest.mark.slow
def test_mlflow_serves_an_estimator_with_thresholds_per_group(python, folder, found):
    """`mlflow models serve`, a separate process, over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [python, "-m", "mlflow", "models", "serve", "-m", folder / "wards", "-p", str(port)]
    command += ["-h", "127.0.0.1", "--env-manager", "local"]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            command, env=surroundings(python), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        address = f"http://127.0.0.1:{port}"
        assert answers(f"{address}/ping", server), (folder / "server.log").read_text()
        table = found["wards"]["body"]
        columns, data = table["dataframe_split"]["columns"], table["dataframe_split"]["data"]
        inputs = {name: [row[i] for row in data] for i, name in enumerate(columns)}
        for body in (table, {"inputs": inputs, "params": {"alpha": 0.1}}):
            served = posted(f"{address}/invocations", body)
            assert [row["labels"] for row in served] == found["wards"]["expected"]
            assert {row["promise"].split(":")[0] for row in served} == {"for each group"}
    finally:
        os.killpg(server.pid, signal.SIGKILL)  # the group of the process that was started here
        server.wait()


def posted(address, body):
    request = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
        return json.loads(reply.read())["predictions"]


def answers(address, server, seconds=120):
    """Whether a server answers before it ends or the time is over."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5) as reply:  # noqa: S310
                return reply.status == 200
        except OSError:
            time.sleep(0.2)
    return False


@pytest.mark.skipif(find_spec("mlflow") is not None, reason="MLflow is installed here")
def test_the_error_without_mlflow_has_a_one_line_remedy():
    with refused(MissingExtraError, "confide.mlflow"):
        __import__("confide.mlflow")
