"""Separate environments for other libraries, which need other versions of the dependencies."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def python_of(name: str) -> Path:
    """The interpreter of `nox -s NAME`, or the one that CONFIDE_NAME names; without one the test is skipped."""
    variable = f"CONFIDE_{name.upper()}"
    found = Path(os.environ.get(variable, ROOT / f".venv-{name}" / "bin" / "python"))
    if not found.exists():
        pytest.skip(f"needs another environment: `nox -s {name}` sets it up, {variable} names its interpreter")
    return found


def has_peer(module: str) -> bool:
    """Whether the environment of other conformal libraries has a module."""
    look = "import sys; from importlib.util import find_spec as f; sys.exit(not (f(sys.argv[1]) and f(sys.argv[2])))"
    package = module.partition(".")[0]
    return subprocess.run([python_of("peers"), "-c", look, package, module]).returncode == 0
