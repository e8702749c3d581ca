"""Files that are written once: if the disk is full, no part of them stays, the error names the option, and a later try
works."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

CONFIDE = str(Path(sys.executable).parent / "confide")
CASES = {
    "keys": (100, "--keys", "federated keygen north --keys north.key --public north.json"),
    "public file": (300, "--public", "federated keygen north --keys north.key --public north.json"),
    "ledger": (4096, "ledger", "ledger limit new.db patients 3"),
    "policy": (100, "--out", "federated policy --coordinator c.json --budget 3 --out policy.json"),
}


def run(words, limit=resource.RLIM_INFINITY):
    """A command that can write files of `limit` bytes."""
    return subprocess.run(
        [CONFIDE, *words.split()],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_file_that_is_cut_short_does_not_stay(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    limit, option, words = CASES[case]
    if case == "policy":
        assert run("federated keygen c --keys c.key --public c.json").returncode == 0
    before = sorted(path.name for path in Path().iterdir())
    failed = run(words, limit)
    assert failed.returncode == 3
    assert failed.stderr.startswith(f"error: {option}: ")
    after = sorted(path.name for path in Path().iterdir())
    if case == "public file":  # the keys are whole, and `federated public` issues the file
        assert after == ["north.key"]
        words = "federated public --keys north.key --out north.json"
    else:
        assert after == before
    assert run(words).returncode == 0
