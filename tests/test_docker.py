"""The image of jobs without Docker: its steps run outside, and its files are checked."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from confide.cli import main
from tests.files import write

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "docker" / "Dockerfile"


def instructions():
    """The instructions of the Dockerfile, each a pair of its name and its text, lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE).replace("\\\n", "")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def manifests():
    found = {"compose": yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))}
    for one in yaml.safe_load_all((ROOT / "docker" / "kubernetes.yaml").read_text(encoding="utf-8")):
        found[one["kind"]] = one
    return found


def pods():
    found = manifests()
    return [found["Job"]["spec"]["template"], found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]]


def calibration_command(folder):
    """The command of compose, with other mounted folders, as arguments of `confide`."""
    command = manifests()["compose"]["services"]["calibrate"]["command"]
    for name in ("data", "ledger", "out"):
        (folder / name).mkdir(exist_ok=True)
    p = np.random.default_rng(0).dirichlet([6, 2, 1], size=300)
    labels = np.resize(["a", "a", "b", "c"], 300)
    write(folder / "data" / "records.csv", {**{f"p_{c}": p[:, k] for k, c in enumerate("abc")}, "diagnosis": labels})
    return [re.sub(r"(?<![\w.])/(data|ledger|out)/", rf"{folder}/\1/", word) for word in command]


@pytest.mark.slow
def test_image_and_pods_may_do_nothing_that_they_do_not_need():
    names = [name for name, _ in instructions()]
    assert int(dict(instructions())["USER"].split(":")[0]) > 0
    assert names.index("USER") > max(place for place, name in enumerate(names) if name == "RUN")
    compose = manifests()["compose"]["services"]["calibrate"]
    assert compose["network_mode"] == "none"
    assert compose["read_only"]
    assert compose["cap_drop"] == ["ALL"]
    for pod in pods():
        (container,) = pod["spec"]["containers"]
        assert pod["spec"]["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        mounted = {one["name"] for one in container["volumeMounts"]}
        assert mounted == {one["name"] for one in pod["spec"]["volumes"]}
        (secret,) = container["env"]
        assert "secretKeyRef" in secret["valueFrom"]  # no password stands in a manifest
    assert manifests()["CronJob"]["spec"]["concurrencyPolicy"] == "Forbid"


@pytest.mark.slow
def test_commands_of_the_manifests_are_understood(tmp_path, capsys):
    """That of compose is run, twice, for one charge; those of the pods lack nothing but their server."""
    command = calibration_command(tmp_path)
    assert [main([*command, "--neighbors", "replace_one"]) for _ in range(2)] == [0, 0]
    first, again = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["calibration"] == again["calibration"]
    calibrate, watch = (pod["spec"]["containers"][0]["args"] for pod in pods())
    here = [word.replace("/data/", f"{tmp_path}/data/").replace("/out/", f"{tmp_path}/out/") for word in calibrate]
    shell = shlex.split(watch[0].partition("exec confide ")[2])
    look = [word.replace("$week", "w").replace("/out/", f"{tmp_path}/out/") for word in shell]
    look[1] = f"{tmp_path}/data/records.csv"
    for words in (here, look):
        without = [word for word in words if "postgresql" not in word and word not in ("--ledger", "--group")]
        without = [word for word in without if not word.startswith(("look=", "--dataset", "patients"))]
        assert main(without) == 0, capsys.readouterr().err


@pytest.mark.long
def test_the_steps_of_the_image_run_outside_of_docker(tmp_path):
    """Needs a package index: runs all RUN, COPY and ENTRYPOINT steps in folders of this test."""
    build = tmp_path / "build"
    build.mkdir()
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python").symlink_to(sys.executable)
    moved = {"/opt/confide": f"{tmp_path}/opt", "/ledger": f"{tmp_path}/ledger", "/out": f"{tmp_path}/out"}
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = plain | {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONNOUSERSITE": "1"}
    stage = -1
    for name, text in instructions():
        for there, here in moved.items():
            text = re.sub(rf"(?<![\w/]){there}\b", here, text)
        if name == "FROM":
            stage += 1
        elif name == "COPY" and stage == 0:
            *sources, target = text.split()
            for source in sources:
                found = ROOT / source
                to = build / target / found.name if target == "./" else build / target
                to.parent.mkdir(parents=True, exist_ok=True)
                if found.is_dir():
                    shutil.copytree(found, to, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(found, to)
        elif name == "RUN":
            step = text.replace("--owner 10001 --group 10001", "")  # only root gives files away
            done = subprocess.run(["/bin/sh", "-ec", step], cwd=build, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    (entry,) = json.loads(next(text for name, text in instructions() if name == "ENTRYPOINT"))
    command = [str(tmp_path / "opt" / "bin" / entry), *calibration_command(tmp_path)]
    alone = ["unshare", "--net", "--map-root-user"]
    if shutil.which("unshare") and subprocess.run([*alone, "true"], capture_output=True).returncode == 0:
        command = [*alone, *command]  # no network, where the system lets a test say so
    environment = plain | {"CONFIDE_LOG": "info"}
    done = subprocess.run(command, cwd=tmp_path / "out", env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert "confide.ledger charged dataset=patients epsilon=1" in done.stderr
    assert json.loads((tmp_path / "out" / "released.json").read_text())["kind"] == "confide/release"
