"""The environment of other conformal libraries, which need other versions of the dependencies."""

import os
import subprocess
from pathlib import Path

import pytest

FOUND = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"


def peers_python() -> Path:
    """Its interpreter: CONFIDE_PEERS, or the one that `nox -s peers` sets up; the test is skipped if there is none."""
    found = Path(os.environ.get("CONFIDE_PEERS", FOUND))
    if not found.exists():
        pytest.skip("needs the peers' environment: `nox -s peers` sets it up, CONFIDE_PEERS names its interpreter")
    return found


def is_installed_there(module: str) -> bool:
    """Whether that environment has a module."""
    look = "import sys; from importlib.util import find_spec as f; sys.exit(not (f(sys.argv[1]) and f(sys.argv[2])))"
    package = module.partition(".")[0]
    return subprocess.run([peers_python(), "-c", look, package, module]).returncode == 0
